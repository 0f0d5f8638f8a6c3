/* Hard values of the narrow floating types (util/narrow.h): on the GPUs of a node, by the kernels that are chosen and
 * by each that can be forced, and between played nodes. On simulated GPUs those that are forced take turns with the
 * numbers of elements, and so do nodes but for one map: it is the arithmetic that is asked for.
 *
 *   narrow [--nodes [MAP]]     MAP: 2+1, and not the others
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/device.h"
#include "util/narrow_calls.h"

static void *memory_get(test_rank_t *t, size_t bytes)
{
    return device_memory(t, bytes, 0);
}

static void copy(test_rank_t *t, void *to, const void *from, size_t bytes, void *stream)
{
    TEST_CUDA(t, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
    TEST_CUDA(t, cudaStreamSynchronize(stream));
}

typedef struct {
    int forced, turn; /* turn: of narrow_calls */
} plan_t;

/* The second is longer than an inline message between nodes, and one more round and one more tile than fit. */
static void body(test_rank_t *t, void *arg)
{
    static const size_t counts[] = {1, 48, 5003};
    narrow_memory_t memory = {NULL, memory_get, device_memory_back, copy};
    const plan_t *p = arg;
    int served;
    cudaStream_t stream;
    rondo_comm_t comm;

    test_note(t, "create");
    comm = device_comm(t);
    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    memory.stream = stream;
    served = narrow_calls(t, comm, &memory, counts, 3, p->turn, p->forced);
    TEST_TRUE(t, served > 0 || p->forced);
    test_note(t, "destroy");
    device_end(t, comm, &stream, 1);
}

static int run(const char *nodes, const char *algo, const char *proto, int turn)
{
    plan_t p = {*algo || *proto, sim_live ? turn : NARROW_ALL};
    int ranks = device_nodes(nodes), bad;

    setenv("RONDO_ALGO", algo, 1);
    setenv("RONDO_PROTO", proto, 1);
    bad = test_run(TEST_PROCESSES, ranks, 120, body, &p);
    printf("narrow: %s '%s' '%s': %s\n", nodes, algo, proto, bad ? "WRONG" : "right");
    return bad;
}

int main(int argc, char **argv)
{
    static const char *const forced[][2] = {{"oneshot", "ll"},  {"twoshot", "ll128"}, {"ring", "ll"},
                                            {"ring", "simple"}, {"chain", "simple"},  {"tree", ""},
                                            {"rd", ""},         {"pat", ""},          {"binomial", ""}};
    int bad = 0;

    test_begin("narrow", 400);
    setenv("RONDO_PROXY_ROUND", "2K", 0);
    if (device_none())
        return TEST_SKIPPED;
    if (argc > 2 && strcmp(argv[1], "--nodes") == 0)
        return run(argv[2], "", "", NARROW_ALL) != 0;
    if (argc > 1 && strcmp(argv[1], "--nodes") == 0)
        return run("1+1+1", "", "", 0) + run("2+1", "", "", NARROW_ALL) + run("2+2", "", "", 1) != 0;
    bad = run("3", "", "", NARROW_ALL) + run("2", "", "", NARROW_ALL);
    for (size_t i = 0; i < sizeof forced / sizeof *forced && !bad; i++)
        bad = run("3", forced[i][0], forced[i][1], (int)i);
    return bad != 0;
}
