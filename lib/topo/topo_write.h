/* XML into files, whole or not at all: several processes may write one of them at a time. */
#ifndef RD_TOPO_TOPO_WRITE_H
#define RD_TOPO_TOPO_WRITE_H

#include "base/env.h"
#include "topo/xml.h"

/* Returns RONDO_ERR_SYSTEM, which names the file, if it cannot be written. */
rondo_result_t rd_xml_save(const rd_xml_t *root, const char *file);
/* Writes this machine, or the one of RONDO_TOPO_FILE, to the file of RONDO_TOPO_DUMP_FILE, if this is the rank that is
 * to do it. A file that cannot be written is a line in the log. */
void rd_topo_dump(const rd_env_t *env, int rank, const rd_log_ctx_t *ctx);

#endif
