/* Whether slots are written past the caches, by non-temporal stores: RONDO_STREAM. */
#ifndef RD_SLOT_STORE_H
#define RD_SLOT_STORE_H

/* How messages are written into slots: plainly, past the caches, or as the peer's place asks for
 * (exec/host/nt_store.h). */
typedef enum { RD_STREAM_NEVER, RD_STREAM_ALWAYS, RD_STREAM_ADAPT } rd_stream_t;

static inline rd_stream_t rd_stream_parse(const char *name)
{
    return name[0] == 'n' ? RD_STREAM_NEVER : name[1] == 'l' ? RD_STREAM_ALWAYS : RD_STREAM_ADAPT;
}

#endif
