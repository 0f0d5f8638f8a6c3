/* On which network ranks go by verbs, whose cards may be on InfiniBand or on Ethernet (RoCE) and do not reach each
 * other then: on one that all ranks have. Cards are played, on a libfabric that lists them in the place of tcp's
 * devices; the communicator itself goes by tcp. */
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_domain.h>

#include "ofi/ofi.h"
#include "util/harness.h"

#define RANKS 3

typedef struct trial {
    const char *cards[RANKS]; /* "mlx5_0 Ethernet, ..." */
    const char *taken[RANKS]; /* NULL: there is none */
} trial_t;

static const trial_t *now;
static int here;
static __typeof__(fi_getinfo) *getinfo;

/* ---- cards: libfabric copies and frees what describes them by its operations */

static int keep(struct fid *fid)
{
    (void)fid;
    return 0;
}

static int copy(struct fid *fid, int command, void *arg)
{
    (void)command;
    *(struct fid **)arg = fid;
    return 0;
}

static struct fi_info *card(const struct fi_info *like, const char *name, const char *network)
{
    static struct fi_ops ops = {.size = sizeof ops, .close = keep, .control = copy};
    static struct fi_link_attr links[4 * RANKS];
    static struct fid_nic nics[4 * RANKS];
    static int n;
    struct fi_info *made = rd_fi.dupinfo(like);

    if (!made || n == 4 * RANKS)
        exit(1);
    links[n] = (struct fi_link_attr){.state = FI_LINK_UP, .network_type = strdup(network)};
    nics[n] = (struct fid_nic){.fid = {.fclass = FI_CLASS_NIC, .ops = &ops}, .link_attr = &links[n]};
    if (made->nic)
        (void)fi_close(&made->nic->fid);
    made->nic = &nics[n++];
    free(made->fabric_attr->prov_name);
    free(made->domain_attr->name);
    made->fabric_attr->prov_name = strdup("verbs;ofi_rxm");
    made->domain_attr->name = strdup(name);
    return made;
}

static int list(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
                struct fi_info **out)
{
    struct fi_info *all = NULL, **end = out;
    char text[200], *state = NULL;
    int error = getinfo(version, node, service, flags, hints, &all);
    const struct fi_info *like = all;

    while (like && strcmp(like->domain_attr->name, "lo") != 0)
        like = like->next;
    if (error != 0 || !like)
        return error ? error : -FI_ENODATA;
    snprintf(text, sizeof text, "%s", now->cards[here]);
    for (char *one = strtok_r(text, ",", &state); one; one = strtok_r(NULL, ",", &state)) {
        char name[32], network[32];
        if (sscanf(one, "%31s %31s", name, network) != 2)
            exit(1);
        *end = card(like, name, network);
        end = &(*end)->next;
    }
    *end = NULL;
    rd_fi.freeinfo(all);
    return 0;
}

/* ---- the choice */

rondo_result_t __real_rd_ofi_choose(rd_ofi_net_t *net, const rd_env_t *env, const char *address, const rd_node_t *node);
rondo_result_t __wrap_rd_ofi_choose(rd_ofi_net_t *net, const rd_env_t *env, const char *address, const rd_node_t *node);

rondo_result_t __wrap_rd_ofi_choose(rd_ofi_net_t *net, const rd_env_t *env, const char *address, const rd_node_t *node)
{
    rd_env_t by_tcp = *env;

    if (!now)
        return __real_rd_ofi_choose(net, env, address, node);
    if (rd_ofi_load())
        exit(1);
    getinfo = rd_fi.getinfo;
    rd_fi.getinfo = list;
    rondo_result_t result = __real_rd_ofi_choose(net, env, address, node);
    rd_fi.getinfo = getinfo;
    if (result != RONDO_SUCCESS)
        return result;
    const char *has = net->info->domain_attr->name;
    if (!now->taken[here] || strcmp(has, now->taken[here]) != 0) {
        printf("rank %d has taken %s\n", here, has);
        exit(1);
    }
    rd_fi.freeinfo(net->info);
    net->info = NULL;
    snprintf(by_tcp.ofi_provider, sizeof by_tcp.ofi_provider, "auto");
    return __real_rd_ofi_choose(net, &by_tcp, address, node);
}

static void body(test_rank_t *t, void *arg)
{
    float one = 1, sum = 0;

    now = arg;
    here = t->rank;
    test_play_node(t, RANKS);
    rondo_comm_t comm = test_comm_gives(t, now->taken[here] ? RONDO_SUCCESS : RONDO_ERR_UNSUPPORTED,
                                        "has verbs on Ethernet, those before it verbs on InfiniBand");
    if (!comm)
        return;
    TEST_OK(t, comm, rondo_allreduce(&one, &sum, 1, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
    TEST_TRUE(t, sum == RANKS);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

int main(void)
{
    const char *both = "mlx5_0 Ethernet,mlx5_1 InfiniBand", *turned = "mlx5_0 InfiniBand,mlx5_1 Ethernet";
    const trial_t trials[] = {
        {{both, turned, both}, {"mlx5_1", "mlx5_0", "mlx5_1"}},
        {{both, turned, "mlx5_0 Ethernet"}, {"mlx5_0", "mlx5_1", "mlx5_0"}},
        {{"mlx5_0 InfiniBand", turned, "mlx5_0 InfiniBand"}, {"mlx5_0", "mlx5_0", "mlx5_0"}},
        {{"mlx5_0 Unknown", "mlx5_0 Unknown", "mlx5_1 Unknown"}, {"mlx5_0", "mlx5_0", "mlx5_1"}},
        {{"mlx5_0 InfiniBand", both, "mlx5_0 Ethernet"}, {NULL, NULL, NULL}},
    };
    int bad = 0;

    test_begin("ofi_networks", 90);
    setenv("RONDO_IFACE", "lo", 1);
    setenv("RONDO_TRANSPORT", "ofi", 1);
    if (!test_has_network()) {
        puts("there is no libfabric");
        return TEST_SKIPPED;
    }
    setenv("RONDO_OFI_PROVIDER", "verbs", 1);
    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++) {
        int wrong = test_run(TEST_PROCESSES, RANKS, 20, body, (void *)(uintptr_t)&trials[i]);
        if (wrong)
            printf("ofi_networks: trial %zu went wrong\n", i);
        bad += wrong;
    }
    return bad != 0;
}
