/* The table of types and operators: every size, that names read back, which pairs make sense, and that numbers out of
 * range are answered and not followed. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/types.h"

static int failures;

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) {                                                                                                 \
            printf("line %d: %s\n", __LINE__, #cond);                                                                  \
            failures++;                                                                                                \
        }                                                                                                              \
    } while (0)

/* One letter a type, in the enum's order: integer, floating, complex, bool, pair. */
static const char kinds[] = "iiiiiiiiffffffccbpppppp";
static const size_t sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 1, 1, 8, 16, 1, 8, 16, 8, 16, 8, 16};
_Static_assert(sizeof kinds - 1 == RONDO_NUM_TYPES && sizeof sizes / sizeof sizes[0] == RONDO_NUM_TYPES, "each type");
/* Per operator, the letters of the types that it makes sense for. */
static const char *const allowed[] = {"ifcb", "ifcb", "if", "if", "ifc", "ib", "ib", "ib", "ib", "ib", "ib", "p", "p"};

static void check_tables(void)
{
    for (int t = 0; t < RONDO_NUM_TYPES; t++) {
        rondo_type_t type = (rondo_type_t)t, back = RONDO_NUM_TYPES;
        CHECK(rondo_type_size(type) == sizes[t]);
        CHECK((sizes[t] & (sizes[t] - 1)) == 0); /* lib/api/args.h shifts by it */
        CHECK(rd_type_floating(type) == (kinds[t] == 'f'));
        CHECK(rd_type_name(type) != NULL && rd_type_parse(rd_type_name(type), &back) == 0 && back == type);
        for (int op = 0; op < RONDO_NUM_OPS; op++)
            CHECK(rd_op_valid(op, type) == (strchr(allowed[op], kinds[t]) != NULL));
    }
    for (int op = 0; op < RONDO_NUM_OPS; op++) {
        rondo_op_t back = -1;
        CHECK(rd_op_name(op) != NULL && rd_op_parse(rd_op_name(op), &back) == 0 && back == op);
    }
}

static void check_strangers(void)
{
    static const int strange[] = {-1, RONDO_NUM_TYPES, 1 << 30, -(1 << 30)};
    rondo_type_t type = RONDO_INT8;
    rondo_op_t op = RONDO_SUM;

    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        CHECK(rondo_type_size((rondo_type_t)strange[i]) == 0);
        CHECK(rd_type_name((rondo_type_t)strange[i]) == NULL);
        CHECK(rd_op_name(strange[i]) == NULL);
        CHECK(!rd_op_valid(strange[i], RONDO_INT32));
        CHECK(!rd_op_valid(RONDO_SUM, (rondo_type_t)strange[i]));
    }
    CHECK(rd_type_parse("float31", &type) == -1 && type == RONDO_INT8);
    CHECK(rd_op_parse("summ", &op) == -1 && op == RONDO_SUM);
    CHECK(rd_type_parse("double", &type) == 0 && type == RONDO_FLOAT64);
    CHECK(rd_type_parse("FLOAT", &type) == 0 && type == RONDO_FLOAT32);
    CHECK(rd_type_parse("int", &type) == 0 && type == RONDO_INT32);
}

int main(void)
{
    alarm(10);
    check_tables();
    check_strangers();
    return failures != 0;
}
