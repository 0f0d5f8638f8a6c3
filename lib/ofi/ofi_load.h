/* The functions of libfabric that rondo calls by name; all others are inline functions of its headers, which call
 * through the objects that these return. libfabric is no library that librondo is linked with: ofi_load.c opens it when
 * the first communicator of several nodes is to go by it. */
#ifndef RD_OFI_OFI_LOAD_H
#define RD_OFI_OFI_LOAD_H

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare" /* libfabric's own headers */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#pragma GCC diagnostic pop

/* What rondo asks for: no newer field of a struct is read, so any libfabric from this one on serves. */
#define RD_OFI_VERSION FI_VERSION(1, 11)

/* Each is a function of libfabric's without "fi_". */
#define RD_FI_FUNCTIONS(F)                                                                                             \
    F(dupinfo)                                                                                                         \
    F(fabric)                                                                                                          \
    F(freeinfo)                                                                                                        \
    F(getinfo)                                                                                                         \
    F(strerror)                                                                                                        \
    F(version)

typedef struct rd_fi {
#define RD_FI_MEMBER(name) __typeof__(fi_##name) *name;
    RD_FI_FUNCTIONS(RD_FI_MEMBER)
#undef RD_FI_MEMBER
} rd_fi_t;

/* To be used after rd_ofi_load has succeeded. */
extern rd_fi_t rd_fi;

/* Opens libfabric, once in a process: returns NULL, or a sentence that says why that is not possible and what to do. */
const char *rd_ofi_load(void);

/* Returns what libfabric says of an error; `error` may have either sign. */
const char *rd_ofi_strerror(long error);

#endif
