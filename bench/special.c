/* Two measurements that are no loop over sizes.
 *
 * call: what the library's own path adds. Two ranks exchange 8 bytes and add, once by rondo_allreduce, once bare: one
 * 16-byte store of {value, number} to a line that both see, and a poll of the other's. In turns; the difference is the
 * cost of the call itself: arguments, plan, executor.
 *
 * With --device cuda it is the time of calls that follow each other in a stream, against launches of an empty kernel.
 *
 * create: making and destroying a communicator, and the memory that it holds once it has been used: of the host, or
 * with --device cuda of the GPUs. */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"

/* One store instruction of 16 bytes, where the machine has one; the number says that the value is there. */
typedef uint64_t pair_t __attribute__((vector_size(16)));

/* Two banks by the parity of the number: who writes number n has read n-1, so its peer is past n-2. */
typedef struct {
    _Alignas(128) volatile pair_t bank[2][8];
} line_t;

#define PATIENCE 10000 /* polls, some tens of microseconds */

static line_t *lines; /* of rank 0, of rank 1 */
static uint64_t number;

static int bare_allreduce(const job_t *job)
{
    volatile pair_t *mine, *theirs;
    uint64_t mine_bits, their_bits;
    float x[2], y[2], *sum = job->recv;
    pair_t in;

    number++;
    mine = &lines[job->rank].bank[number & 1][0];
    theirs = &lines[1 - job->rank].bank[number & 1][0];
    memcpy(x, job->send, sizeof x);
    memcpy(&mine_bits, x, sizeof x);
    atomic_thread_fence(memory_order_release);
    *mine = (pair_t){mine_bits, number};
    in = *theirs;
    for (int spins = 0; in[1] != number; spins++) {
        if (spins > PATIENCE) /* the other rank has no core: on a quiet machine this is never reached */
            sched_yield();
        in = *theirs;
    }
    their_bits = in[0];
    memcpy(y, &their_bits, sizeof y);
    sum[0] = job->rank == 0 ? x[0] + y[0] : y[0] + x[0];
    sum[1] = job->rank == 0 ? x[1] + y[1] : y[1] + x[1];
    return 0;
}

static void print_call(const options_t *options, const side_t *mine, const side_t *bare, const stats_t *added,
                       bool right)
{
    if (options->format == FORMAT_JSON) {
        printf("{\"program\": \"rondo-perf\", \"version\": %d, \"operation\": \"call\", \"device\": \"%s\", "
               "\"ranks\": 2, \"rondo_us\": %.4f, \"bare_us\": %.4f, \"added_ns\": %.2f, \"added_ns_low\": %.2f, "
               "\"added_ns_high\": %.2f, \"turns\": %d, \"calls_a_turn\": %ld, \"right\": %s}\n",
               rondo_version(), options->cuda ? "cuda" : "host", mine->time.median * 1e6, bare->time.median * 1e6,
               added->median * 1e9, added->low * 1e9, added->high * 1e9, options->turns, mine->iters,
               right ? "true" : "false");
        return;
    }
    printf("# rondo-perf call: an allreduce of 8 bytes between 2 ranks against %s\n",
           options->cuda ? "the launch of an empty kernel" : "a bare exchange over shared lines");
    printf("# %d turns of %ld and %ld calls; medians, quartiles in brackets\n", options->turns, mine->iters,
           bare->iters);
    printf("rondo        %9.1f ns [%.1f %.1f]\n", mine->time.median * 1e9, mine->time.low * 1e9, mine->time.high * 1e9);
    printf("bare         %9.1f ns [%.1f %.1f]\n", bare->time.median * 1e9, bare->time.low * 1e9, bare->time.high * 1e9);
    printf("call's path  %9.1f ns [%.1f %.1f]\n", added->median * 1e9, added->low * 1e9, added->high * 1e9);
    printf("# results %s\n", right ? "right" : "WRONG");
}

static int bare_launch(const job_t *job)
{
    (void)job;
    device_launch();
    return 0;
}

/* Against a bare exchange over lines that both share. */
static bool call_on_host(const options_t *options, job_t *job, side_t *mine, side_t *bare)
{
    float send[2] = {1.0f + (float)world.rank, 10.0f}, recv[2] = {0}, bare_recv[2] = {0};
    job_t bare_job;

    lines = world.shared(2 * sizeof *lines);
    if (!lines)
        die(NULL, "the two ranks share no memory");
    job->send = send;
    job->recv = recv;
    bare_job = *job;
    bare_job.recv = bare_recv;
    bare->call = bare_allreduce;
    bare->job = &bare_job;
    timing_run(mine, bare, options);
    return recv[0] == 3 && recv[1] == 20 && bare_recv[0] == 3 && bare_recv[1] == 20;
}

static bool call_on_device(const options_t *options, job_t *job, side_t *mine, side_t *bare)
{
    float sum[2] = {1.0f + (float)world.rank, 10.0f};
    float *memory = device_allocate(2 * sizeof sum);

    device_copy(memory, sum, sizeof sum);
    job->send = memory;
    job->recv = memory + 2;
    bare->call = bare_launch;
    bare->job = job;
    timing_run(mine, bare, options);
    device_copy(sum, memory + 2, sizeof sum);
    device_free(memory);
    return sum[0] == 3 && sum[1] == 20;
}

int special_call(const options_t *options)
{
    options_t with = *options;
    job_t job;
    side_t mine = {0}, bare = {0};
    stats_t added;

    if (world.nranks != 2) {
        if (world.rank == 0)
            fprintf(stderr, "rondo-perf: call is measured between 2 ranks, not %d\n", world.nranks);
        return 2;
    }
    with.op = op_find("allreduce");
    job_open(&job, &with, false);
    job.comm = comm_open(NULL, "perf");
    job.type = RONDO_FLOAT32;
    job.reduction = RONDO_SUM;
    job.count = 2;
    job.bytes = 2 * sizeof(float);
    mine.call = with.op->call;
    mine.job = &job;
    bool right =
        options->cuda ? call_on_device(options, &job, &mine, &bare) : call_on_host(options, &job, &mine, &bare);
    for (int t = 0; t < options->turns; t++)
        mine.turns[t] -= bare.turns[t];
    stats_of(&added, mine.turns, options->turns);
    if (world.rank == 0)
        print_call(options, &mine, &bare, &added, right);
    (void)rondo_comm_destroy(job.comm);
    job_close(&job);
    free(mine.turns);
    free(bare.turns);
    return !right;
}

/* Small and large, so that what is made on first use is there. */
static void use(const options_t *options, rondo_comm_t comm)
{
    enum { COUNT = 1 << 18 };
    float *data = options->cuda ? device_allocate(COUNT * sizeof *data) : calloc(COUNT, sizeof *data);
    rondo_result_t result = data ? RONDO_SUCCESS : RONDO_ERR_NO_MEMORY;

    for (int count = 2; count <= COUNT && result == RONDO_SUCCESS; count *= 8)
        result = rondo_allreduce(data, data, (size_t)count, RONDO_FLOAT32, RONDO_SUM, comm, device_stream());
    if (result != RONDO_SUCCESS)
        die(comm, "allreduce failed: %s", rondo_result_string(result));
    device_wait();
    if (options->cuda)
        device_free(data);
    else
        free(data);
}

/* Bytes that this rank holds, of the memory that communicators lie in. */
static double held(const options_t *options)
{
    return options->cuda ? device_held() : machine_held();
}

typedef struct {
    double first; /* the process's first communicator: the library loads what it needs */
    stats_t made, ended;
    double fresh, used, another; /* bytes held on all ranks; and by one more communicator */
} creation_t;

static void print_create(const options_t *options, const creation_t *c)
{
    if (options->format == FORMAT_JSON) {
        printf("{\"program\": \"rondo-perf\", \"version\": %d, \"operation\": \"create\", \"device\": \"%s\", "
               "\"ranks\": %d, \"first_ms\": %.4f, \"create_ms\": %.4f, \"create_ms_max\": %.4f, "
               "\"destroy_ms\": %.4f, \"held_mb\": %.3f, \"held_used_mb\": %.3f, \"held_another_mb\": %.3f}\n",
               rondo_version(), options->cuda ? "cuda" : "host", world.nranks, c->first * 1e3, c->made.median * 1e3,
               c->made.max * 1e3, c->ended.median * 1e3, c->fresh / 1e6, c->used / 1e6, c->another / 1e6);
        return;
    }
    printf("# rondo-perf create: %d ranks, %d times, the slowest rank%s\n", world.nranks, options->turns,
           options->cuda ? "; CUDA's contexts were there before" : "");
    printf("first    %9.3f ms\n", c->first * 1e3);
    printf("create   %9.3f ms [min %.3f, max %.3f]\n", c->made.median * 1e3, c->made.min * 1e3, c->made.max * 1e3);
    printf("destroy  %9.3f ms [min %.3f, max %.3f]\n", c->ended.median * 1e3, c->ended.min * 1e3, c->ended.max * 1e3);
    printf("holds    %9.3f MB on all ranks together, %.3f MB after allreduces up to 1 MB; another one %.3f MB\n",
           c->fresh / 1e6, c->used / 1e6, c->another / 1e6);
}

int special_create(const options_t *options)
{
    double made[options->turns], ended[options->turns], before = sum_of_ranks(held(options)), start;
    creation_t c;
    rondo_comm_t comm, another;

    world.barrier();
    start = now();
    comm = comm_open(NULL, "perf");
    c.first = most_of_ranks(now() - start);
    c.fresh = sum_of_ranks(held(options)) - before;
    use(options, comm);
    c.used = sum_of_ranks(held(options)) - before;
    another = comm_open(NULL, "perf");
    c.another = sum_of_ranks(held(options)) - before - c.used;
    (void)rondo_comm_destroy(another);
    (void)rondo_comm_destroy(comm);
    for (int t = 0; t < options->turns; t++) {
        world.barrier();
        start = now();
        comm = comm_open(NULL, "perf");
        made[t] = most_of_ranks(now() - start);
        start = now();
        (void)rondo_comm_destroy(comm);
        ended[t] = most_of_ranks(now() - start);
    }
    stats_of(&c.made, made, options->turns);
    stats_of(&c.ended, ended, options->turns);
    if (world.rank == 0)
        print_create(options, &c);
    return 0;
}
