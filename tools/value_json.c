/* Reading JSON, strictly. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "value.h"

typedef struct json {
    values_t *values;
    const char *at, *end;
    char *room; /* for a text while it is read: as long as the file */
} json_t;

static value_t *parse(json_t *j, int depth);

static value_t *fail(json_t *j, const char *why)
{
    if (!j->values->why)
        j->values->why = why;
    return NULL;
}

static void skip_space(json_t *j)
{
    while (j->at < j->end && strchr(" \t\r\n", *j->at) && *j->at)
        j->at++;
}

/* Takes the character if it comes next. */
static bool take(json_t *j, char c)
{
    if (j->at == j->end || *j->at != c)
        return false;
    j->at++;
    return true;
}

static bool take_word(json_t *j, const char *word)
{
    size_t n = strlen(word);

    if ((size_t)(j->end - j->at) < n || memcmp(j->at, word, n) != 0)
        return false;
    j->at += n;
    return true;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Returns the character of an escape behind its backslash, or -1. */
static int escape(json_t *j)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    int code = 0;

    if (j->at == j->end)
        return -1;
    char c = *j->at++;
    const char *simple = c ? strchr(from, c) : NULL;
    if (simple)
        return to[simple - from];
    if (c != 'u' || j->end - j->at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(*j->at++);
        if (digit < 0)
            return -1;
        code = code * 16 + digit;
    }
    return code < 0x80 ? code : '?';
}

static value_t *parse_text(json_t *j)
{
    size_t n = 0;

    while (j->at < j->end && *j->at != '"') {
        int c = (unsigned char)*j->at++;
        if (c < ' ')
            return fail(j, "a text of it has a control character");
        if (c == '\\')
            c = escape(j);
        if (c < 0)
            return fail(j, "a text of it has a wrong escape");
        j->room[n++] = (char)c;
    }
    if (!take(j, '"'))
        return fail(j, "a text of it does not end");
    return value_make_text(j->values, j->room, n);
}

static bool take_digits(json_t *j)
{
    const char *first = j->at;

    while (j->at < j->end && *j->at >= '0' && *j->at <= '9')
        j->at++;
    return j->at > first;
}

/* The bytes behind the file are readable up to a 0. */
static value_t *parse_number(json_t *j)
{
    const char *first = j->at, *digits;
    bool negative = take(j, '-'), whole = true;

    digits = j->at;
    if (!take_digits(j) || (*digits == '0' && j->at > digits + 1))
        return fail(j, "it has a wrong number");
    if (take(j, '.')) {
        whole = false;
        if (!take_digits(j))
            return fail(j, "it has a wrong number");
    }
    if (take(j, 'e') || take(j, 'E')) {
        whole = false;
        if (!take(j, '+'))
            take(j, '-');
        if (!take_digits(j))
            return fail(j, "it has a wrong number");
    }
    value_t *v = value_make(j->values, whole ? VALUE_INT : VALUE_FLOAT);
    errno = 0;
    if (v && whole)
        v->n = strtoull(digits, NULL, 10);
    else if (v)
        v->x = strtod(first, NULL);
    if (v && whole && errno)
        return fail(j, "it has too large a number");
    if (v)
        v->negative = negative && whole;
    return v;
}

/* Between its brackets. */
static value_t *parse_many(json_t *j, bool dict, int depth)
{
    value_t *v = value_make(j->values, dict ? VALUE_DICT : VALUE_LIST), *item;
    char close = dict ? '}' : ']';

    skip_space(j);
    if (!v || take(j, close))
        return v;
    do {
        skip_space(j);
        if (dict) {
            if (!take(j, '"'))
                return fail(j, "a member of it has no name");
            item = parse_text(j);
            skip_space(j);
            if (!item || !value_append(j->values, v, item))
                return NULL;
            if (!take(j, ':'))
                return fail(j, "a member of it has no value");
        }
        item = parse(j, depth + 1);
        if (!item || !value_append(j->values, v, item))
            return NULL;
        skip_space(j);
    } while (take(j, ','));
    return take(j, close) ? v : fail(j, "it is not JSON, or ends too early");
}

static value_t *parse_bool(json_t *j, bool is)
{
    value_t *v = value_make(j->values, VALUE_BOOL);

    if (v)
        v->n = is;
    return v;
}

static value_t *parse(json_t *j, int depth)
{
    skip_space(j);
    if (depth > VALUE_DEPTH)
        return fail(j, "it is too deep");
    if (take(j, '{'))
        return parse_many(j, true, depth);
    if (take(j, '['))
        return parse_many(j, false, depth);
    if (take(j, '"'))
        return parse_text(j);
    if (take_word(j, "true"))
        return parse_bool(j, true);
    if (take_word(j, "false"))
        return parse_bool(j, false);
    if (take_word(j, "null"))
        return value_make(j->values, VALUE_NONE);
    return parse_number(j);
}

const value_t *value_read_json(values_t *values, const char *bytes, size_t n)
{
    char *copy = malloc(n + 1), *room = malloc(n + 1);
    value_t *v = NULL;

    if (!copy || !room) {
        values->why = "there is no memory for it";
    } else {
        json_t j = {values, copy, copy + n, room};
        memcpy(copy, bytes, n);
        copy[n] = 0;
        v = parse(&j, 0);
        skip_space(&j);
        if (v && j.at != j.end)
            v = fail(&j, "something follows its end");
    }
    free(copy);
    free(room);
    return v;
}
