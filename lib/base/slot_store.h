/* Whether slots are written past the caches, by non-temporal stores: RONDO_NT_STORE. */
#ifndef RD_BASE_SLOT_STORE_H
#define RD_BASE_SLOT_STORE_H

/* How messages are written into slots: plainly, past the caches, or as is faster for the peer's core
 * (exec/host/nt_store.h). */
typedef enum { RD_NT_STORE_NEVER, RD_NT_STORE_ALWAYS, RD_NT_STORE_ADAPT } rd_nt_store_t;

static inline rd_nt_store_t rd_nt_store_parse(const char *name)
{
    return name[0] == 'n' ? RD_NT_STORE_NEVER : name[1] == 'l' ? RD_NT_STORE_ALWAYS : RD_NT_STORE_ADAPT;
}

#endif
