/* What the process that serves a rendezvous asks of it, from other threads: that it ends, and how it has gone. The
 * thread is that of rendezvous.c, which the registry knows by the id's job. */
#include <stdio.h>

#include "boot/registry.h"
#include "base/wait.h"
#include "boot/rendezvous.h"

void rd_rendezvous_leave(const rd_id_t *ids, int nids, int rank, rondo_result_t code)
{
    int64_t grace_ms = code == RONDO_SUCCESS       ? 10000
                       : code == RONDO_ERR_ABORTED ? 0
                       : code == RONDO_ERR_TIMEOUT
                           ? 100  /* late ranks have been waited for */
                           : 400; /* with what goes before (join.c), an error comes well within a second, and where a
                                     communicator is made from another one (derive.c) within little more than one */
    const int64_t until = rd_clock_ms() + grace_ms;
    const char *why = *rd_thread_error() ? rd_thread_error() : "the creation failed there";
    char sentence[RD_ERROR_BYTES], whois[RD_WHOIS];
    if (code == RONDO_ERR_SYSTEM || code == RONDO_ERR_NO_MEMORY) { /* this process lacks something */
        rd_whois(whois);
        snprintf(sentence, sizeof(sentence), "rank %d (%s): %.400s", rank, whois, why);
        for (int i = 0; i < nids; i++)
            rd_served_fail(ids[i].creds.job, sentence);
    }
    for (int i = 0; i < nids; i++) /* they all end meanwhile */
        rd_served_finish(ids[i].creds.job, until - rd_clock_ms(), why);
}

bool rd_rendezvous_failure(const rd_id_t *id, char sentence[RD_ERROR_BYTES])
{
    return rd_served_failure(id->creds.job, sentence);
}

bool rd_rendezvous_is_here(const rd_id_t *id)
{
    return rd_served_here(id->creds.job);
}

bool rd_rendezvous_cancel(const rd_id_t *id)
{
    return rd_served_release(id->creds.job, "the id was used there for a communicator of 1 rank");
}
