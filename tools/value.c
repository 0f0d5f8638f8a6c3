/* See value.h. */
#include "value.h"

#include <stdlib.h>
#include <string.h>

#include "monitor/out.h"

value_t *value_make(values_t *values, value_kind_t kind)
{
    value_t *v = values->count < VALUE_MOST ? calloc(1, sizeof *v) : NULL;

    if (!v) {
        values->why = values->count < VALUE_MOST ? "there is no memory for it" : "it says too much";
        return NULL;
    }
    v->kind = kind;
    v->next = values->all;
    values->all = v;
    values->count++;
    return v;
}

value_t *value_make_text(values_t *values, const char *bytes, size_t n)
{
    value_t *v = value_make(values, VALUE_TEXT);

    if (!v)
        return NULL;
    v->text = malloc(n + 1);
    if (!v->text) {
        values->why = "there is no memory for it";
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        v->text[i] = rd_out_plain(bytes[i]);
    v->text[n] = 0;
    return v;
}

bool value_append(values_t *values, value_t *to, value_t *item)
{
    if (to->nitems == to->room) {
        size_t room = to->room ? 2 * to->room : 8;
        value_t **more = realloc(to->items, room * sizeof *more);
        if (!more) {
            values->why = "there is no memory for it";
            return false;
        }
        to->items = more;
        to->room = room;
    }
    to->items[to->nitems++] = item;
    return true;
}

void value_free(values_t *values)
{
    for (value_t *v = values->all, *next; v; v = next) {
        next = v->next;
        free(v->text);
        free(v->items);
        free(v);
    }
    memset(values, 0, sizeof *values);
}

const value_t *value_of(const value_t *dict, const char *key)
{
    for (size_t i = 0; dict && dict->kind == VALUE_DICT && i + 1 < dict->nitems; i += 2)
        if (dict->items[i]->kind == VALUE_TEXT && strcmp(dict->items[i]->text, key) == 0)
            return dict->items[i + 1];
    return NULL;
}

size_t value_items(const value_t *list)
{
    return list && list->kind == VALUE_LIST ? list->nitems : 0;
}

const value_t *value_item(const value_t *list, size_t i)
{
    return i < value_items(list) ? list->items[i] : NULL;
}

const char *value_text(const value_t *text)
{
    return text && text->kind == VALUE_TEXT ? text->text : "";
}

uint64_t value_amount(const value_t *number)
{
    return number && number->kind == VALUE_INT && !number->negative ? number->n : 0;
}

int value_int(const value_t *number, int least, int most, int otherwise)
{
    if (!number || number->kind != VALUE_INT || number->n > INT32_MAX)
        return otherwise;
    int value = number->negative ? -(int)number->n : (int)number->n;
    return value >= least && value <= most ? value : otherwise;
}

bool value_is_true(const value_t *value)
{
    return value && value->kind == VALUE_BOOL && value->n;
}
