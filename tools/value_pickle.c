/* Reading pickles of Python that hold dict, list, tuple, str, int, float, bool and None, of protocols 2 to 5 as their
 * binary opcodes have them. There is no opcode here that could make an object, call a function or load a module: a
 * pickle with one is refused. */
#include <stdlib.h>
#include <string.h>

#include "value.h"

#define STACK_MOST ((size_t)8 << 20)

typedef struct pickle {
    values_t *values;
    const unsigned char *at, *end;
    value_t **stack; /* NULL in it: a mark */
    size_t depth, room;
    value_t **memo;
    size_t nmemo;
    size_t remembered; /* by opcodes that number what they remember themselves */
} pickle_t;

static bool fail(pickle_t *p, const char *why)
{
    if (!p->values->why)
        p->values->why = why;
    return false;
}

/* ---- bytes ---- */

static const unsigned char *take(pickle_t *p, uint64_t n)
{
    const unsigned char *at = p->at;

    if ((uint64_t)(p->end - p->at) < n) {
        fail(p, "it ends too early");
        return NULL;
    }
    p->at += n;
    return at;
}

/* Little-endian. */
static bool take_word(pickle_t *p, int bytes, uint64_t *word)
{
    const unsigned char *at = take(p, (uint64_t)bytes);

    *word = 0;
    for (int i = 0; at && i < bytes; i++)
        *word |= (uint64_t)at[i] << 8 * i;
    return at;
}

/* ---- the stack ---- */

static bool push(pickle_t *p, value_t *v)
{
    if (p->depth == p->room) {
        size_t room = p->room ? 2 * p->room : 256;
        value_t **more = room <= STACK_MOST ? realloc(p->stack, room * sizeof *more) : NULL;
        if (!more)
            return fail(p, "it is too deep, or there is no memory for it");
        p->stack = more;
        p->room = room;
    }
    p->stack[p->depth++] = v;
    return true;
}

static value_t *top(const pickle_t *p)
{
    return p->depth ? p->stack[p->depth - 1] : NULL;
}

/* Finds the last mark. */
static bool find_mark(pickle_t *p, size_t *mark)
{
    *mark = p->depth;
    while (*mark > 0 && p->stack[*mark - 1])
        --*mark;
    return *mark > 0 ? true : fail(p, "its stack makes no sense");
}

static bool push_new(pickle_t *p, value_kind_t kind, uint64_t n)
{
    value_t *v = value_make(p->values, kind);

    if (!v)
        return false;
    v->n = n;
    return push(p, v);
}

static bool push_signed(pickle_t *p, int64_t n)
{
    if (!push_new(p, VALUE_INT, n < 0 ? 0 - (uint64_t)n : (uint64_t)n))
        return false;
    top(p)->negative = n < 0;
    return true;
}

/* The last `n` values become a tuple, which is a list here. */
static bool make_tuple(pickle_t *p, size_t n, size_t marks)
{
    value_t *v = value_make(p->values, VALUE_LIST);

    if (!v || p->depth < n + marks)
        return v && fail(p, "its stack makes no sense");
    for (size_t i = p->depth - n; i < p->depth; i++)
        if (!p->stack[i] || !value_append(p->values, v, p->stack[i]))
            return fail(p, "its stack makes no sense");
    p->depth -= n + marks;
    return push(p, v);
}

/* What lies above `mark` goes into the list or dict below it. */
static bool put_into(pickle_t *p, value_kind_t kind, size_t from, size_t marks)
{
    value_t *to = from > marks ? p->stack[from - marks - 1] : NULL;

    if (!to || to->kind != kind || (kind == VALUE_DICT && (p->depth - from) % 2))
        return fail(p, "its stack makes no sense");
    for (size_t i = from; i < p->depth; i++)
        if (!p->stack[i] || !value_append(p->values, to, p->stack[i]))
            return fail(p, "its stack makes no sense");
    p->depth = from - marks;
    return true;
}

/* ---- the memo ---- */

static bool remember(pickle_t *p, uint64_t at)
{
    if (!top(p) || at > STACK_MOST)
        return fail(p, "its memo makes no sense");
    if (at >= p->nmemo) {
        size_t n = (size_t)at * 2 + 64;
        value_t **more = realloc(p->memo, n * sizeof *more);
        if (!more)
            return fail(p, "there is no memory for it");
        memset(more + p->nmemo, 0, (n - p->nmemo) * sizeof *more);
        p->memo = more;
        p->nmemo = n;
    }
    p->memo[at] = top(p);
    return true;
}

static bool recall(pickle_t *p, uint64_t at)
{
    if (at >= p->nmemo || !p->memo[at])
        return fail(p, "its memo makes no sense");
    return push(p, p->memo[at]);
}

/* ---- opcodes ---- */

static bool read_text(pickle_t *p, int length_bytes)
{
    uint64_t n;
    const unsigned char *at = take_word(p, length_bytes, &n) ? take(p, n) : NULL;
    value_t *v = at ? value_make_text(p->values, (const char *)at, (size_t)n) : NULL;

    return v && push(p, v);
}

static bool read_float(pickle_t *p)
{
    const unsigned char *at = take(p, 8);
    uint64_t bits = 0;

    for (int i = 0; at && i < 8; i++)
        bits = bits << 8 | at[i];
    if (!at || !push_new(p, VALUE_FLOAT, 0))
        return false;
    memcpy(&top(p)->x, &bits, sizeof bits);
    return true;
}

/* Two's complement; eight bytes, and a ninth for the sign, are all that a number here needs. */
static bool read_long(pickle_t *p)
{
    uint64_t n, value = 0;
    const unsigned char *at = take_word(p, 1, &n) ? take(p, n) : NULL;

    if (!at)
        return false;
    if (n > 9 || (n == 9 && at[8] != 0))
        return fail(p, "it has too large a number");
    for (uint64_t i = 0; i < n && i < 8; i++)
        value |= (uint64_t)at[i] << 8 * i;
    if (n == 0 || n == 9 || !(at[n - 1] & 0x80))
        return push_new(p, VALUE_INT, value);
    if (n < 8)
        value |= UINT64_MAX << 8 * n;
    return push_signed(p, (int64_t)value);
}

static bool read_number(pickle_t *p, int opcode)
{
    uint64_t n;

    if (!take_word(p, opcode == 'J' ? 4 : opcode == 'M' ? 2 : 1, &n))
        return false;
    return opcode == 'J' ? push_signed(p, (int32_t)(uint32_t)n) : push_new(p, VALUE_INT, n);
}

static bool read_memo(pickle_t *p, int opcode)
{
    uint64_t n;

    if (!take_word(p, opcode == 'q' || opcode == 'h' ? 1 : 4, &n))
        return false;
    return opcode == 'q' || opcode == 'r' ? remember(p, n) : recall(p, n);
}

static bool read_marked(pickle_t *p, int opcode)
{
    size_t mark;

    if (!find_mark(p, &mark))
        return false;
    return opcode == 't'   ? make_tuple(p, p->depth - mark, 1)
           : opcode == 'e' ? put_into(p, VALUE_LIST, mark, 1)
                           : put_into(p, VALUE_DICT, mark, 1);
}

static bool obey(pickle_t *p, int opcode)
{
    uint64_t n;

    switch (opcode) {
    case 0x80: /* PROTO */
        return take_word(p, 1, &n) && (n <= 5 || fail(p, "it is of a newer protocol"));
    case 0x95: /* FRAME */
        return take_word(p, 8, &n);
    case '(': /* MARK */
        return push(p, NULL);
    case '}': /* EMPTY_DICT */
        return push_new(p, VALUE_DICT, 0);
    case ']': /* EMPTY_LIST */
    case ')': /* EMPTY_TUPLE */
        return push_new(p, VALUE_LIST, 0);
    case 'N':
        return push_new(p, VALUE_NONE, 0);
    case 0x88: /* NEWTRUE */
    case 0x89: /* NEWFALSE */
        return push_new(p, VALUE_BOOL, opcode == 0x88);
    case 'J': /* BININT */
    case 'K': /* BININT1 */
    case 'M': /* BININT2 */
        return read_number(p, opcode);
    case 0x8a: /* LONG1 */
        return read_long(p);
    case 'G': /* BINFLOAT */
        return read_float(p);
    case 'X': /* BINUNICODE */
        return read_text(p, 4);
    case 0x8c: /* SHORT_BINUNICODE */
        return read_text(p, 1);
    case 0x8d: /* BINUNICODE8 */
        return read_text(p, 8);
    case 0x85: /* TUPLE1, TUPLE2, TUPLE3 */
    case 0x86:
    case 0x87:
        return make_tuple(p, (size_t)(opcode - 0x84), 0);
    case 't': /* TUPLE */
    case 'e': /* APPENDS */
    case 'u': /* SETITEMS */
        return read_marked(p, opcode);
    case 'a': /* APPEND */
        return p->depth > 1 ? put_into(p, VALUE_LIST, p->depth - 1, 0) : fail(p, "its stack makes no sense");
    case 's': /* SETITEM */
        return p->depth > 2 ? put_into(p, VALUE_DICT, p->depth - 2, 0) : fail(p, "its stack makes no sense");
    case 'q': /* BINPUT, LONG_BINPUT, BINGET, LONG_BINGET */
    case 'r':
    case 'h':
    case 'j':
        return read_memo(p, opcode);
    case 0x94: /* MEMOIZE */
        return remember(p, p->remembered++);
    default:
        return fail(p, "it is no pickle of plain values: an opcode of it is unknown, or would make an object");
    }
}

const value_t *value_read_pickle(values_t *values, const unsigned char *bytes, size_t n)
{
    pickle_t p = {.values = values, .at = bytes, .end = bytes + n};
    const value_t *v = NULL;
    bool good = true;

    while (good && p.at < p.end && *p.at != '.')
        good = obey(&p, *p.at++);
    if (good && p.at == p.end)
        good = fail(&p, "it ends too early");
    if (good && p.depth == 1)
        v = top(&p);
    if (good && !v)
        fail(&p, "its stack makes no sense");
    free(p.stack);
    free(p.memo);
    return v;
}
