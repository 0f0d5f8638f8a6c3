/* See net_rank.h. */
#include <stdlib.h>
#include <unistd.h>

#include "util/net_rank.h"

int net_rank_meet(net_rank_t *r, net_id_t *id)
{
    atomic_store(&r->stop.culprit, -1);
    if (rd_env_read(&r->env)) {
        return 1;
    }
    if (r->who.rank == 0) {
        (void)rd_boot_id_create(&id->id, &r->env); /* carries the error on failure */
        atomic_store(&id->made, 1);
    }
    while (!atomic_load(&id->made)) {
        usleep(1000);
    }
    return rd_boot_create(&r->boot, &id->id, r->who.rank, r->who.nranks, &r->env, &r->who, &r->stop) != RONDO_SUCCESS;
}

int net_rank_join(net_rank_t *r)
{
    unsigned char *remote = malloc((size_t)r->who.nranks);
    if (remote == NULL) {
        return 1;
    }
    for (int i = 0; i < r->who.nranks; i++) {
        remote[i] = i != r->who.rank;
    }
    rondo_result_t result =
        rd_net_create(&r->net, r->boot, r->who.rank, r->who.nranks, remote, &r->env, &r->who, &r->stop);
    free(remote);
    return result != RONDO_SUCCESS;
}

void net_rank_leave(net_rank_t *r)
{
    rd_net_destroy(r->net);
    rd_boot_destroy(r->boot);
}
