/* Trees of XML: made, asked and written. See xml.h. */
#include "topo/xml.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define VALUE 1024 /* bytes of a value that is made here */

rd_xml_t *rd_xml_make(rd_xml_t *parent, const char *name)
{
    rd_xml_t *element = calloc(1, sizeof *element);

    if (!element || !(element->name = strdup(name))) {
        free(element);
        return NULL;
    }
    element->parent = parent;
    if (parent && parent->last)
        parent->last->next = element;
    else if (parent)
        parent->first = element;
    if (parent)
        parent->last = element;
    return element;
}

static rd_xml_attr_t *find(const rd_xml_t *element, const char *name)
{
    for (int i = 0; i < element->nattrs; i++)
        if (strcmp(element->attrs[i].name, name) == 0)
            return &element->attrs[i];
    return NULL;
}

static int add(rd_xml_t *element, const char *name, char *value)
{
    rd_xml_attr_t *more = realloc(element->attrs, ((size_t)element->nattrs + 1) * sizeof *more);
    char *copy = strdup(name);

    if (more)
        element->attrs = more;
    if (!more || !copy) {
        free(copy);
        return -1;
    }
    element->attrs[element->nattrs++] = (rd_xml_attr_t){copy, value};
    return 0;
}

int rd_xml_put(rd_xml_t *element, const char *name, const char *format, ...)
{
    char text[VALUE], *value;
    rd_xml_attr_t *old = find(element, name);
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (!(value = strdup(text)))
        return -1;
    if (old) {
        free(old->value);
        old->value = value;
        return 0;
    }
    if (add(element, name, value) == 0)
        return 0;
    free(value);
    return -1;
}

/* By a loop over the tree, so that no depth of a file is a depth of the stack. */
void rd_xml_free(rd_xml_t *element)
{
    while (element) {
        rd_xml_t *child = element->first, *up = element->parent;

        if (child) {
            element->first = child->next;
            element = child;
            continue;
        }
        for (int i = 0; i < element->nattrs; i++) {
            free(element->attrs[i].name);
            free(element->attrs[i].value);
        }
        free(element->attrs);
        free(element->name);
        free(element);
        element = up;
    }
}

bool rd_xml_named(const rd_xml_t *element, const char *name)
{
    return strcmp(element->name, name) == 0;
}

const char *rd_xml_get(const rd_xml_t *element, const char *name)
{
    const rd_xml_attr_t *attr = find(element, name);

    return attr ? attr->value : NULL;
}

long rd_xml_number(const rd_xml_t *element, const char *name, long otherwise, bool *bad)
{
    const char *text = rd_xml_get(element, name);
    char *end;
    long number;

    if (!text || !*text)
        return otherwise;
    errno = 0;
    number = strtol(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);
    if (errno || *end || number > INT_MAX || number < INT_MIN) {
        *bad = true;
        return otherwise;
    }
    return number;
}

/* ---- writing ---- */

static void value_write(const char *value, FILE *file)
{
    for (const char *c = value; *c; c++)
        switch (*c) {
        case '&':
            fputs("&amp;", file);
            break;
        case '<':
            fputs("&lt;", file);
            break;
        case '>':
            fputs("&gt;", file);
            break;
        case '"':
            fputs("&quot;", file);
            break;
        case '\n':
        case '\t':
        case '\r':
            fprintf(file, "&#%d;", *c);
            break;
        default:
            fputc(*c, file);
        }
}

void rd_xml_write(const rd_xml_t *root, FILE *file)
{
    int depth = 0;

    for (const rd_xml_t *e = root; e;) {
        fprintf(file, "%*s<%s", 2 * depth, "", e->name);
        for (int i = 0; i < e->nattrs; i++) {
            fprintf(file, " %s=\"", e->attrs[i].name);
            value_write(e->attrs[i].value, file);
            fputc('"', file);
        }
        fputs(e->first ? ">\n" : "/>\n", file);
        if (e->first) {
            e = e->first;
            depth++;
            continue;
        }
        while (e != root && !e->next) {
            e = e->parent;
            fprintf(file, "%*s</%s>\n", 2 * --depth, "", e->name);
        }
        e = e == root ? NULL : e->next;
    }
}
