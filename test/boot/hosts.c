/* Ranks on two hosts, played by network namespaces joined by a switch: the rendezvous is reached from its own host and
 * from the other, so the ranks that first listened on loopback are asked to move. Ranks find their nodes ("a descriptor
 * could be passed": not between these), and a rendezvous on loopback is refused with a hint, as is one on a network on
 * which the other host has no address. Needs root and `ip`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boot/boot_int.h"
#include "util/hosts.h"
#include "node/node.h"

#define RANKS 5

static int run_rank(const rondo_unique_id_t *id, int rank, int nranks, const char *hint)
{
    static rd_log_ctx_t ctx;
    static rd_stop_t stop;
    rd_boot_t *boot;
    rd_node_t node;
    rd_env_t env;
    int all[RANKS] = {0}, bad;
    ctx = (rd_log_ctx_t){.rank = rank, .nranks = nranks, .name = "test"};
    if (rd_env_read(&env) != RONDO_SUCCESS)
        return 1;
    env.create_timeout_ms = hint ? 500 : 20000;
    if (hint)
        rd_log_set_level(RD_LOG_NONE);
    rondo_result_t code = rd_boot_create(&boot, id, rank, nranks, &env, &ctx, &stop);
    if (hint)
        return code == RONDO_SUCCESS || (rank && !strstr(rd_log_ctx_error(&ctx), hint));
    if (code != RONDO_SUCCESS)
        return 1;
    bad = rd_addr_is_loopback(&boot->addr); /* here, or it could not have worked */
    bad |= rd_node_find(&node, boot, rank, nranks, &env, -1, &ctx, &stop) != RONDO_SUCCESS;
    if (!bad && (node.nnodes != 2 || node.node_of[1] != 1 || node.node_of[4] != 0))
        bad = 1;
    all[rank] = rank;
    bad |= rd_boot_allgather(boot, all, sizeof(all[0])) != RONDO_SUCCESS || all[nranks - 1] != nranks - 1;
    rd_boot_farewell(boot, RONDO_SUCCESS, -1);
    rd_node_free(&node);
    rd_boot_destroy(boot);
    return bad;
}

/* Rank r is on host r % 2; rank 0 makes the id. */
static int run(int nranks, const char *iface, const char *hint)
{
    int status, bad = 0, told[2];
    rd_env_t env;
    rondo_unique_id_t id;
    if (pipe(told) != 0)
        return 1;
    for (int r = 0; r < nranks; r++) {
        if (fork() != 0)
            continue;
        alarm(30);
        if (hosts_enter(r % 2) || rd_env_read(&env) != RONDO_SUCCESS)
            exit(1);
        snprintf(env.iface, sizeof(env.iface), "%s", iface);
        if (r == 0 && rd_boot_id_create(&id, &env) != RONDO_SUCCESS)
            exit(1);
        for (int i = 1; i < nranks && r == 0; i++)
            if (write(told[1], &id, sizeof(id)) != sizeof(id))
                exit(1);
        if (r != 0 && read(told[0], &id, sizeof(id)) != sizeof(id))
            exit(1);
        exit(run_rank(&id, r, nranks, hint));
    }
    while (wait(&status) > 0)
        bad |= status != 0;
    close(told[0]);
    close(told[1]);
    if (bad)
        printf("FAILED: %d ranks, rendezvous on %s\n", nranks, *iface ? iface : "the first interface");
    return bad;
}

int main(void)
{
    alarm(110); /* the ranks' own alarms come first, so that the hosts are removed */
    if (hosts_make(2) != 0) {
        printf("needs root and network namespaces\n");
        return 77;
    }
    int bad = run(RANKS, "", NULL);
    bad |= run(RANKS, "eth0", NULL);
    bad |= run(2, "lo", "RONDO_IFACE");
    bad |= hosts_command(1, "ip addr flush dev eth0") != 0;
    bad |= run(2, "eth0", "this host does not reach 10.99.7.1:");
    hosts_remove();
    return bad;
}
