/* Opening a plugin as NCCL does, whatever it is for. */
#ifndef RD_BASE_PLUGIN_OPEN_H
#define RD_BASE_PLUGIN_OPEN_H

#define RD_PLUGIN_WHY 300

/* Opens the file of that name, or `prefix`-NAME.so if `name` is neither a path nor a whole file's; STATIC_PLUGIN is the
 * program itself. Returns NULL, with the reason, if there is none. */
void *rd_plugin_open(const char *prefix, const char *name, char why[RD_PLUGIN_WHY]);

#endif
