/* A dump for PyTorch's analyser of flight recorders: see dump_fr.c. */
#ifndef RD_MONITOR_DUMP_FR_H
#define RD_MONITOR_DUMP_FR_H

#include "monitor/streams.h"

/* Writes one process. Communicators of which rd_dump_members does not know all ranks are left out, and so are messages
 * that cannot be counted. Returns false if there is no memory. */
bool rd_dump_fr(rd_out_t *out, const rd_dump_t *dump, const rd_streams_t *streams, int process);

/* Its words for a collective, without "nccl:", and for a type. "": there is none. */
const char *rd_dump_fr_name(int kind);
const char *rd_dump_fr_type(int type);

#endif
