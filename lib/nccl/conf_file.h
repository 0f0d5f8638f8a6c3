/* What NCCL's configuration files say. They are read once in a process. */
#ifndef RD_NCCL_CONF_FILE_H
#define RD_NCCL_CONF_FILE_H

typedef struct nc_conf_line {
    struct nc_conf_line *next;
    const char *name, *value;
} nc_conf_line_t;

const nc_conf_line_t *nc_conf_lines(void);   /* each name once, in the order in which they count */
const char *nc_conf_value(const char *name); /* NULL: no file has the variable, or it is empty there */
const char *nc_env(const char *name);        /* from the environment, "" too, or else from a file */

#endif
