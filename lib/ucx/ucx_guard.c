/* UCX calculates: it chooses protocols by estimates, also as it sends, fetches and polls. What it does in a call that a
 * program makes, while that traps or rounds as it likes, goes through here, whoever in lib/ucx calls it. A communicator
 * is made and ends in the default environment as a whole (core/create.c); so what is called for that alone is not
 * here. */
#include "base/fpenv.h"
#include "ucx/ucx_load.h"

static rd_ucp_t unguarded;

#define DEFINE(type, name, parameters, arguments)                                                                      \
    static type name parameters                                                                                        \
    {                                                                                                                  \
        rd_fpenv_t program;                                                                                            \
                                                                                                                       \
        rd_fpenv_foreign_begin(&program);                                                                              \
        type result = unguarded.name arguments;                                                                        \
        rd_fpenv_foreign_end(&program);                                                                                \
        return result;                                                                                                 \
    }
RD_UCP_GUARDED(DEFINE)
#undef DEFINE

void rd_ucx_guard(rd_ucp_t *ucp)
{
    unguarded = *ucp;
#define REPLACE(type, name, parameters, arguments) ucp->name = name;
    RD_UCP_GUARDED(REPLACE)
#undef REPLACE
}
