/* What a file says, as values: of JSON, or of a pickle. Both are read by readers that make nothing but these, trust no
 * length, and go no deeper than VALUE_DEPTH. */
#ifndef VALUE_H
#define VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VALUE_DEPTH 32
#define VALUE_MOST ((size_t)32 << 20)       /* values of a file */
#define VALUE_FILE_MOST ((size_t)512 << 20) /* bytes of one */

typedef enum { VALUE_NONE, VALUE_BOOL, VALUE_INT, VALUE_FLOAT, VALUE_TEXT, VALUE_LIST, VALUE_DICT } value_kind_t;

typedef struct value {
    value_kind_t kind;
    bool negative;        /* of an int, whose amount is in `n` */
    uint64_t n;           /* of an int or a bool */
    double x;             /* of a float */
    char *text;           /* ended by 0, printable ASCII: other characters are '?' */
    struct value **items; /* of a list; of a dict key, value, key, value */
    size_t nitems, room;
    struct value *next; /* of all that were made */
} value_t;

/* All values of a file, which go with it. */
typedef struct values {
    value_t *all;
    size_t count;
    const char *why; /* why it could not be read */
} values_t;

/* Read a file's bytes. Return NULL, with `why`, if it is not of that form. */
const value_t *value_read_json(values_t *values, const char *bytes, size_t n);
const value_t *value_read_pickle(values_t *values, const unsigned char *bytes, size_t n);
void value_free(values_t *values);

/* For the readers. Return NULL, with `why`, if there are too many, or is no memory. */
value_t *value_make(values_t *values, value_kind_t kind);
value_t *value_make_text(values_t *values, const char *bytes, size_t n);
bool value_append(values_t *values, value_t *to, value_t *item);

/* ---- for who looks at them; all take NULL, and values of other kinds ---- */

const value_t *value_of(const value_t *dict, const char *key);
const value_t *value_item(const value_t *list, size_t i);
size_t value_items(const value_t *list);
const char *value_text(const value_t *text);  /* "": it is none */
uint64_t value_amount(const value_t *number); /* 0: it is none, or below 0 */
int value_int(const value_t *number, int least, int most, int otherwise);
bool value_is_true(const value_t *value);

#endif
