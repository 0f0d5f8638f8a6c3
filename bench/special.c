/* Two measurements that are no loop over sizes.
 *
 * call: what the library's own path adds. Two ranks exchange 8 bytes and add, once by rondo_allreduce, once bare: one
 * 16-byte store of {value, number} to a line that both see, and a poll of the other's. In turns; the difference is the
 * cost of the call itself: arguments, plan, executor.
 *
 * create: making and destroying a communicator, and the memory that it holds once it has been used. */
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

static rondo_comm_t create(void)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comm;
    rondo_result_t result;

    config.device = RONDO_DEVICE_HOST;
    config.name = "perf";
    result = world.comm_create(&comm, &config);
    if (result != RONDO_SUCCESS)
        die(NULL, "cannot create the communicator: %s", rondo_result_string(result));
    return comm;
}

static void print_call(const options_t *options, const side_t *mine, const side_t *bare, const stats_t *added,
                       bool right)
{
    if (options->format == FORMAT_JSON) {
        printf("{\"program\": \"rondo-perf\", \"version\": %d, \"operation\": \"call\", \"ranks\": 2, "
               "\"rondo_us\": %.4f, \"bare_us\": %.4f, \"added_ns\": %.2f, \"added_ns_low\": %.2f, "
               "\"added_ns_high\": %.2f, \"turns\": %d, \"calls_a_turn\": %ld, \"right\": %s}\n",
               rondo_version(), mine->time.median * 1e6, bare->time.median * 1e6, added->median * 1e9, added->low * 1e9,
               added->high * 1e9, options->turns, mine->iters, right ? "true" : "false");
        return;
    }
    printf("# rondo-perf call: an allreduce of 8 bytes between 2 ranks against a bare exchange over shared lines\n");
    printf("# %d turns of %ld and %ld calls; medians, quartiles in brackets\n", options->turns, mine->iters,
           bare->iters);
    printf("rondo        %9.1f ns [%.1f %.1f]\n", mine->time.median * 1e9, mine->time.low * 1e9, mine->time.high * 1e9);
    printf("bare         %9.1f ns [%.1f %.1f]\n", bare->time.median * 1e9, bare->time.low * 1e9, bare->time.high * 1e9);
    printf("call's path  %9.1f ns [%.1f %.1f]\n", added->median * 1e9, added->low * 1e9, added->high * 1e9);
    printf("# results %s\n", right ? "right" : "WRONG");
}

int special_call(const options_t *options)
{
    float send[2] = {1.0f + (float)world.rank, 10.0f}, recv[2] = {0}, bare_recv[2] = {0};
    options_t with = *options;
    job_t job, bare_job;
    side_t mine, bare;
    stats_t added;
    bool right;

    if (world.nranks != 2) {
        if (world.rank == 0)
            fprintf(stderr, "rondo-perf: call is measured between 2 ranks, not %d\n", world.nranks);
        return 2;
    }
    lines = world.shared(2 * sizeof *lines);
    if (!lines)
        die(NULL, "the two ranks share no memory");
    with.op = op_find("allreduce");
    job_open(&job, &with, false);
    job.comm = create();
    job.type = RONDO_FLOAT32;
    job.reduction = RONDO_SUM;
    job.count = 2;
    job.bytes = sizeof send;
    job.send = send;
    job.recv = recv;
    bare_job = job;
    bare_job.recv = bare_recv;
    mine = (side_t){.call = with.op->call, .job = &job};
    bare = (side_t){.call = bare_allreduce, .job = &bare_job};
    timing_run(&mine, &bare, options);
    for (int t = 0; t < options->turns; t++)
        mine.turns[t] -= bare.turns[t];
    stats_of(&added, mine.turns, options->turns);
    right = recv[0] == 3 && recv[1] == 20 && bare_recv[0] == 3 && bare_recv[1] == 20;
    if (world.rank == 0)
        print_call(options, &mine, &bare, &added, right);
    (void)rondo_comm_destroy(job.comm);
    job_close(&job);
    free(mine.turns);
    free(bare.turns);
    return !right;
}

/* The sum over the ranks, and the slowest rank. */
static double sum_of(double mine)
{
    double all[world.nranks], sum = 0;

    world.gather(&mine, 1, all);
    for (int r = 0; r < world.nranks; r++)
        sum += all[r];
    return sum;
}

static double max_of(double mine)
{
    double all[world.nranks], max;

    world.gather(&mine, 1, all);
    max = all[0];
    for (int r = 1; r < world.nranks; r++)
        max = all[r] > max ? all[r] : max;
    return max;
}

/* Small and large, so that what is made on first use is there. */
static void use(rondo_comm_t comm)
{
    enum { COUNT = 1 << 18 };
    float *data = calloc(COUNT, sizeof *data);
    rondo_result_t result = data ? RONDO_SUCCESS : RONDO_ERR_NO_MEMORY;

    for (int count = 2; count <= COUNT && result == RONDO_SUCCESS; count *= 8)
        result = rondo_allreduce(data, data, (size_t)count, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    if (result != RONDO_SUCCESS)
        die(comm, "allreduce failed: %s", rondo_result_string(result));
    free(data);
}

static void print_create(const options_t *options, const stats_t *made, const stats_t *ended, double fresh, double used)
{
    if (options->format == FORMAT_JSON) {
        printf("{\"program\": \"rondo-perf\", \"version\": %d, \"operation\": \"create\", \"ranks\": %d, "
               "\"create_ms\": %.4f, \"create_ms_max\": %.4f, \"destroy_ms\": %.4f, \"held_mb\": %.3f, "
               "\"held_used_mb\": %.3f}\n",
               rondo_version(), world.nranks, made->median * 1e3, made->max * 1e3, ended->median * 1e3, fresh / 1e6,
               used / 1e6);
        return;
    }
    printf("# rondo-perf create: %d ranks, %d times, the slowest rank\n", world.nranks, options->turns);
    printf("create   %9.3f ms [min %.3f, max %.3f]\n", made->median * 1e3, made->min * 1e3, made->max * 1e3);
    printf("destroy  %9.3f ms [min %.3f, max %.3f]\n", ended->median * 1e3, ended->min * 1e3, ended->max * 1e3);
    printf("holds    %9.3f MB on all ranks together, %.3f MB after allreduces up to 1 MB\n", fresh / 1e6, used / 1e6);
}

int special_create(const options_t *options)
{
    double made[options->turns], ended[options->turns], before, fresh, used, start;
    stats_t make, end;
    rondo_comm_t comm = create(); /* once untimed: the library's first touch is not a communicator's */

    use(comm);
    (void)rondo_comm_destroy(comm);
    for (int t = 0; t < options->turns; t++) {
        world.barrier();
        start = now();
        comm = create();
        made[t] = max_of(now() - start);
        start = now();
        (void)rondo_comm_destroy(comm);
        ended[t] = max_of(now() - start);
    }
    before = sum_of(machine_held());
    comm = create();
    fresh = sum_of(machine_held()) - before;
    use(comm);
    used = sum_of(machine_held()) - before;
    (void)rondo_comm_destroy(comm);
    stats_of(&make, made, options->turns);
    stats_of(&end, ended, options->turns);
    if (world.rank == 0)
        print_create(options, &make, &end, fresh, used);
    return 0;
}
