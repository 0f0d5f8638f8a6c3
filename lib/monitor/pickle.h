/* Writing Python's pickles of protocol 2, of dict, list, tuple, str, int, float, bool and None alone: nothing that
 * makes an object when it is read. */
#ifndef RD_MONITOR_PICKLE_H
#define RD_MONITOR_PICKLE_H

#include <stdint.h>

#include "monitor/out.h"

void rd_pickle_begin(rd_out_t *out);
void rd_pickle_end(rd_out_t *out);

/* Between the two of a dict come its keys and values in turn, between those of a list its items. */
void rd_pickle_dict(rd_out_t *out);
void rd_pickle_dict_end(rd_out_t *out);
void rd_pickle_list(rd_out_t *out);
void rd_pickle_list_end(rd_out_t *out);
void rd_pickle_pair(rd_out_t *out); /* the two last values become a tuple */

void rd_pickle_text(rd_out_t *out, const char *text); /* ASCII */
void rd_pickle_int(rd_out_t *out, uint64_t value);
void rd_pickle_signed(rd_out_t *out, int32_t value);
void rd_pickle_float(rd_out_t *out, double value);
void rd_pickle_bool(rd_out_t *out, bool value);
void rd_pickle_none(rd_out_t *out);

#endif
