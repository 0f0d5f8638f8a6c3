/* XML as a tree of elements: what NCCL's files of topologies and graphs are. An element keeps every attribute and every
 * child that it has in the file, also those that rondo does not know, and is written as it was read. Texts between
 * elements and comments are not kept.
 *
 * Files come from anywhere, so reading has limits (xml_read.c), and no document type: entities are never expanded. The
 * parser is expat; without it rd_xml_read refuses every file (xml_none.c), and trees can still be made and written. */
#ifndef RD_TOPO_XML_H
#define RD_TOPO_XML_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

typedef struct rd_xml_attr {
    char *name, *value;
} rd_xml_attr_t;

typedef struct rd_xml {
    char *name;
    int line; /* of the file; 0: it was made here */
    int nattrs;
    rd_xml_attr_t *attrs; /* in the order of the file */
    struct rd_xml *parent, *first, *last, *next;
} rd_xml_t;

/* The file's outermost element, which the caller frees. `variable` named the file, and errors name both and the line.
 */
rondo_result_t rd_xml_read(rd_xml_t **root, const char *file, const char *variable);
void rd_xml_free(rd_xml_t *element); /* with all below it; it must have no parent. NULL is accepted */

/* Makes an element, as the last child of `parent` unless that is NULL. Returns NULL if there is no memory. */
rd_xml_t *rd_xml_make(rd_xml_t *parent, const char *name);
/* Sets an attribute, the last one if it is new. Returns 0, or -1 if there is no memory. */
int rd_xml_put(rd_xml_t *element, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));

bool rd_xml_named(const rd_xml_t *element, const char *name);
const char *rd_xml_get(const rd_xml_t *element, const char *name); /* an attribute's value; NULL: there is none */
/* A whole number, also as 0x1f; `otherwise` if there is no such attribute or it is empty. *bad is set if it is neither,
 * or does not fit. */
long rd_xml_number(const rd_xml_t *element, const char *name, long otherwise, bool *bad);

void rd_xml_write(const rd_xml_t *root, FILE *file);

#endif
