/* The types and operators: sizes, names, which operator makes sense for which type. */
#ifndef RD_TYPES_H
#define RD_TYPES_H

#include <rondo.h>

const char *rd_type_name(rondo_type_t type);             /* "float32"; NULL if out of range */
const char *rd_op_name(rondo_op_t op);                   /* "sum" */
int rd_type_parse(const char *name, rondo_type_t *type); /* 0 or -1; also "float", "double", "int" */
int rd_op_parse(const char *name, rondo_op_t *op);
int rd_op_valid(rondo_op_t op, rondo_type_t type); /* built-in operators only */

#endif
