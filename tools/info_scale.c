/* rondo-info scale: what a communicator of many nodes costs one of its ranks, without those nodes.
 *
 * The numbers come from the code itself: a communicator of two ranks on two played nodes is made, and says how many
 * exchanges that takes and how long a rank's blocks are; tables are sized by the types that fill them; and for some
 * operations the choice is made, the schedule emitted and the program compiled for one rank of the large machine, and
 * timed. That rank is in the middle, an inner one of trees.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/comm.h"
#include "core/transports.h"
#include "info.h"
#include "number.h"
#include "plan/choose.h"

typedef struct machine {
    int nodes, local, nranks;
    rd_shape_t shape;
    rd_layout_t layout;
    int exchanges;    /* while a communicator is made */
    size_t exchanged; /* bytes of one rank's blocks in all of them */
} machine_t;

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* NULL: there is no transport between nodes. */
static const rd_transport_ops_t *between(void)
{
    char why[RD_TRANSPORT_WHY];
    rd_env_t env;

    return rd_env_read(&env) == RONDO_SUCCESS ? rd_transport_between(&env, why) : NULL;
}

static rondo_comm_t join(const rondo_unique_id_t *id, int rank)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comm = NULL;

    config.device = RONDO_DEVICE_HOST;
    setenv("RONDO_HOSTID", rank == 0 ? "scale0" : "scale1", 1);
    return rondo_comm_create(&comm, 2, id, rank, &config) == RONDO_SUCCESS ? comm : NULL;
}

static int second_rank(int told)
{
    rondo_unique_id_t id;
    rondo_comm_t comm;

    if (read(told, &id, sizeof id) != sizeof id)
        return 1;
    comm = join(&id, 1);
    return !comm || rondo_comm_destroy(comm) != RONDO_SUCCESS;
}

/* Makes the communicator of two ranks. 0, or -1: rondo has said why. The id is made behind the fork: it comes with a
 * thread, and a child forked beside one may inherit a lock that nobody gives back. */
static int measure_creation(machine_t *m)
{
    rondo_unique_id_t id;
    rondo_comm_t comm = NULL;
    int told[2];
    pid_t child;

    if (!between())
        return 0;
    if (pipe(told) != 0)
        return -1;
    child = fork();
    if (child == 0) {
        close(told[1]);
        _exit(second_rank(told[0]));
    }
    if (rondo_unique_id_create(&id) == RONDO_SUCCESS && write(told[1], &id, sizeof id) == sizeof id)
        comm = join(&id, 0);
    close(told[0]);
    close(told[1]);
    if (comm) {
        rd_boot_exchanged(comm->boot, &m->exchanges, &m->exchanged);
        rondo_comm_destroy(comm);
    }
    waitpid(child, NULL, 0);
    return comm ? 0 : -1;
}

static void print_bytes(const char *what, double bytes)
{
    const char *unit = bytes < 1e4 ? "B" : bytes < 1e7 ? "KB" : bytes < 1e10 ? "MB" : "GB";
    double scale = bytes < 1e4 ? 1 : bytes < 1e7 ? 1e3 : bytes < 1e10 ? 1e6 : 1e9;

    printf("    %-44s %10.*f %s\n", what, bytes < 1e4 ? 0 : 1, bytes / scale, unit);
}

static void creation(const machine_t *m)
{
    size_t n = (size_t)m->nranks, boot, remote = n - (size_t)m->local;
    int sockets;

    rd_boot_size(m->nranks, &sockets, &boot);
    printf("%d nodes of %d: %d ranks\n", m->nodes, m->local, m->nranks);
    printf("    %-44s %10d\n", "bootstrap: connections of a rank", sockets);
    if (m->exchanges > 0) {
        printf("    %-44s %10d\n", "bootstrap: messages sent by a rank", m->exchanges * sockets / 2);
        print_bytes("bootstrap: sent by a rank", (double)m->exchanged * (double)(n - 1));
    }
    printf("    %-44s %10d\n", "network: connections made at creation", m->nranks <= 64 ? m->nranks - m->local : 0);
    print_bytes("memory of a rank: names and addresses", (double)boot);
    print_bytes("  tables of connections",
                (double)n * (RD_CHANNELS * (sizeof(rd_send_t) + sizeof(rd_recv_t)) + sizeof(void *) + sizeof(int)));
    if (between() && between()->conn_bytes)
        print_bytes("  network connections", (double)remote * RD_CHANNELS * (double)between()->conn_bytes());
    print_bytes("  shared memory of the node, its part", (double)m->layout.segment_bytes);
    print_bytes("  address space for what a connection needs",
                (double)remote * RD_CHANNELS * 2 * (double)m->layout.mirror_bytes);
}

/* Different peers on other nodes that the program sends to or receives from, and messages to them in one pass. */
static void network_use(const machine_t *m, const rd_program_t *p, int rank, int *peers, long *messages)
{
    const int *node = m->shape.node;
    char *seen = calloc((size_t)m->nranks, 1);

    *peers = 0;
    *messages = 0;
    for (int i = 0; seen && i < p->nsends + p->nrecvs; i++) {
        int peer = i < p->nsends ? p->sends[i].peer : p->recvs[i - p->nsends].peer;

        *peers += node[peer] != node[rank] && !seen[peer];
        seen[peer] = 1;
    }
    for (int i = 0; i < p->nsteps; i++)
        for (int k = 0; k < p->steps[i].ndst && p->steps[i].part != RD_PART_MORE; k++)
            if (p->steps[i].dst[k].where == RD_PEER && node[p->sends[p->steps[i].dst[k].index].peer] != node[rank])
                *messages += p->steps[i].repeat;
    free(seen);
}

static void plan(const machine_t *m, const rd_env_t *env, rd_coll_t coll, size_t bytes, const char *label)
{
    const rd_choose_args_t args = {.coll = coll,
                                   .bytes = bytes,
                                   .type_size = 4,
                                   .shape = &m->shape,
                                   .env = env,
                                   .local = m->local,
                                   .cores = m->local,
                                   .slot_bytes = m->layout.slot_bytes,
                                   .long_bytes = m->layout.long_bytes,
                                   .slots = (int)m->layout.slots};
    const rd_sched_args_t at = {&m->shape, coll, m->nranks / 2 - 1, 0, 0, 0};
    rd_sched_args_t sched = at;
    double began = now_ms(), chosen;
    rd_choice_t choice;
    rd_program_t *program;
    rd_steps_t *steps;
    const char *why;
    char name[24];
    long messages;
    int peers;

    if (rd_choose(&args, &choice, NULL, NULL, NULL) != RONDO_SUCCESS)
        return;
    chosen = now_ms();
    sched.param = choice.param;
    sched.together = choice.together;
    steps = choice.algo->emit(&sched);
    if (rd_compile(steps, 1, &program, &why) != 0) {
        printf("    %-26s %s\n", label, why);
        rd_steps_free(steps);
        return;
    }
    double compiled = now_ms();
    network_use(m, program, sched.rank, &peers, &messages);
    snprintf(name, sizeof name, choice.param ? "%s:%d" : "%s", choice.algo->name, choice.param);
    printf("    %-26s %-15s %8d %9ld %10d %8d %9.2f %9.2f %12.0f\n", label, name, peers, messages, program->nsteps,
           program->ntmp, chosen - began, compiled - chosen, choice.us);
    rd_program_free(program);
    rd_steps_free(steps);
}

static void plans(const machine_t *m, const rd_env_t *env)
{
    size_t n = (size_t)m->nranks;

    printf("    %-26s %-15s %8s %9s %10s %8s %9s %9s %12s\n", "operation", "algorithm", "network", "messages", "steps",
           "scratch", "choose", "compile", "predicted");
    printf("    %-26s %-15s %8s %9s %10s %8s %9s %9s %12s\n", "", "", "peers", "a pass", "", "slices", "ms", "ms",
           "us");
    plan(m, env, RD_BARRIER, 1, "barrier");
    plan(m, env, RD_ALLREDUCE, 8, "allreduce 8 B");
    plan(m, env, RD_ALLREDUCE, 64 << 10, "allreduce 64 KB");
    plan(m, env, RD_ALLREDUCE, 64 << 20, "allreduce 64 MB");
    plan(m, env, RD_BROADCAST, 8, "broadcast 8 B");
    plan(m, env, RD_BROADCAST, 64 << 20, "broadcast 64 MB");
    plan(m, env, RD_ALLGATHER, 64 * n, "allgather 64 B a rank");
    plan(m, env, RD_REDUCE_SCATTER, 64 * n, "reduce_scatter 64 B a rank");
    plan(m, env, RD_ALLTOALL, 64 * n, "alltoall 64 B a pair");
    printf("\n");
}

static int scale(machine_t *m, const rd_env_t *env, const char *text)
{
    int *node;

    (void)number_shape(text, 2, &m->nodes, &m->local); /* looked at before */
    m->nranks = m->nodes * m->local;
    node = malloc((size_t)m->nranks * sizeof *node);
    if (!node)
        return 1;
    for (int r = 0; r < m->nranks; r++)
        node[r] = r / m->local;
    m->shape = (rd_shape_t){m->nranks, m->nodes, node};
    rd_layout_init(&m->layout, m->local, m->nodes, env);
    creation(m);
    plans(m, env);
    free(node);
    return 0;
}

int info_scale(const rd_env_t *env, int argc, char **argv)
{
    static char *const usual[] = {"4x8", "64x8", "512x8", "12500x8"};
    machine_t m = {0};
    int code = 0;

    for (int i = 0; i < argc; i++)
        if (!number_shape(argv[i], 2, &m.nodes, &m.local)) {
            fprintf(stderr, "rondo-info scale: \"%s\": wanted is NODESxRANKS, as 64x8, of at most 1048576 ranks\n",
                    argv[i]);
            return 2;
        }
    if (measure_creation(&m) != 0)
        return 1;
    if (argc <= 0) {
        argc = 4;
        argv = (char **)usual;
    }
    for (int i = 0; i < argc && code == 0; i++)
        code = scale(&m, env, argv[i]);
    return code;
}
