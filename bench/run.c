/* One run: a communicator (two for --peer self), buffers for the largest size, a row for every size. */
#include <stdlib.h>
#include <string.h>

#include "perf.h"
#include "tools/progress.h"

typedef struct {
    const options_t *options;
    const output_t *output;
    rondo_comm_t comm, other; /* other: of --peer self */
    buffers_t buffers;
    long wrong;
} state_t;

static progress_t progress; /* over all operations; rank 0's alone is ever seen */

static const output_t *const outputs[] = {&output_table, &output_osu, &output_nccl, &output_json};

rondo_comm_t comm_open(const char *algo, const char *name)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    const char *set = getenv("RONDO_ALGO");
    char *before = set ? strdup(set) : NULL;
    rondo_comm_t comm;
    rondo_result_t result;

    config.device = device_number();
    config.name = name;
    if (algo)
        setenv("RONDO_ALGO", algo, 1);
    result = world.comm_create(&comm, &config);
    if (result != RONDO_SUCCESS)
        die(NULL, "cannot create the communicator: %s", rondo_result_string(result));
    if (before)
        setenv("RONDO_ALGO", before, 1);
    else
        unsetenv("RONDO_ALGO");
    free(before);
    return comm;
}

/* Input and poison anew, one call, a look at everything. Returns the wrong elements of all ranks. */
static long verify(state_t *state, const side_t *side, job_t *job)
{
    size_t size = rondo_type_size(job->type);
    segment_t segment;
    int error;

    buffers_fill(job);
    world.barrier(); /* a call that reads a peer's buffer must not come before its fill */
    error = side->call(side->job);
    if (error)
        die(job->comm, "%s of %zu bytes failed: %s", job->op->name, job->bytes,
            rondo_result_string((rondo_result_t)error));
    device_wait();
    buffers_fetch(job);
    if (state->options->plant_error && job_segment(job, 0, &segment) && segment.count)
        job->host_recv[(segment.at + segment.count - 1) * size] ^= 1;
    return (long)sum_of_ranks((double)buffers_wrong(job));
}

static int group_start(void)
{
    return (int)rondo_group_start();
}

static int group_end(void)
{
    return (int)rondo_group_end();
}

/* Makes the side's calls such in pieces, of a copy of its job. */
static void divide(side_t *side, job_t *copy, int (*start)(void), int (*end)(void))
{
    if (copy->pieces < 2 || !side->call)
        return;
    *copy = *side->job;
    copy->piece = side->call;
    copy->group_start = start;
    copy->group_end = end;
    *side = (side_t){.call = job_in_pieces, .job = copy};
}

static void measure(state_t *state, row_t *row, job_t *job)
{
    const options_t *options = state->options;
    job_t other = *job, mine_divided = *job, peer_divided = *job;
    int (*start)(void) = NULL, (*end)(void) = NULL; /* of the peer's groups */

    *row = (row_t){.bytes = job->bytes, .count = job->count, .moved = job->moved, .wrong = -1, .peer_wrong = -1};
    row->mine = (side_t){.call = job->op->call, .job = job};
    other.comm = state->other;
    if (options->peer == PEER_MPI)
        row->peer = (side_t){.call = peer_mpi_call(job), .job = job};
    if (options->peer == PEER_NCCL) {
        row->peer = (side_t){.call = peer_nccl_call(job), .job = job};
        start = peer_nccl_group_start, end = peer_nccl_group_end;
    }
    if (options->peer == PEER_SELF) {
        row->peer = (side_t){.call = job->op->call, .job = &other};
        start = group_start, end = group_end;
    }
    if (options->peer == PEER_COPY)
        row->peer = (side_t){.call = buffers_copy, .job = job};
    row->has_peer = row->peer.call != NULL;
    divide(&row->mine, &mine_divided, group_start, group_end);
    if (options->peer != PEER_COPY)
        divide(&row->peer, &peer_divided, start, end);
    if (job->in_place)
        buffers_clear(job);
    else
        buffers_fill(job);
    timing_run(&row->mine, &row->peer, options);
    if (options->percentiles)
        timing_percentiles(&row->mine);
    if (options->percentiles && row->has_peer)
        timing_percentiles(&row->peer);
    row->iters = row->mine.iters;
    if (row->has_peer)
        timing_ratio(&row->ratio, &row->mine, &row->peer, options->turns);
    if (options->verify && job->op->layout != LAYOUT_NONE) {
        row->wrong = verify(state, &row->mine, job);
        if (row->has_peer && options->peer != PEER_COPY)
            row->peer_wrong = verify(state, &row->peer, job);
        state->wrong += row->wrong;
    }
    if (row->peer_wrong > 0 && world.rank == 0)
        fprintf(stderr, "rondo-perf: the peer has %ld wrong elements of %zu bytes\n", row->peer_wrong, row->bytes);
    if (row->mine.graph)
        device_forget(row->mine.graph);
    if (row->peer.graph)
        device_forget(row->peer.graph);
    free(row->mine.turns);
    free(row->peer.turns);
}

static void one_size(state_t *state, job_t *out, job_t *in, size_t bytes, size_t *last)
{
    const options_t *options = state->options;
    bool nccl = options->format == FORMAT_NCCL;
    row_t row, second;

    job_size(out, bytes, nccl);
    /* sizes that round to one already seen, or to nothing; nccl-tests prints those */
    if (!nccl && out->op->layout != LAYOUT_NONE && (out->bytes == *last || out->bytes == 0))
        return;
    *last = out->bytes;
    buffers_place(&state->buffers, out);
    measure(state, &row, out);
    if (nccl) {
        job_size(in, bytes, nccl);
        buffers_place(&state->buffers, in);
        measure(state, &second, in);
        if (!in->in_place)
            second.wrong = -1;
    }
    if (world.rank != 0)
        return;
    progress_clear(&progress);
    state->output->row(options, &row, nccl ? &second : NULL);
    if (options->plot)
        plot_row(options, &row);
}

/* How many sizes a run goes through. */
static int sizes_of(const options_t *options)
{
    int n = 0;

    for (size_t bytes = options->first; bytes <= options->last; bytes *= options->factor)
        n++;
    return options->op->layout == LAYOUT_NONE ? 1 : n;
}

static void all_sizes(state_t *state)
{
    const options_t *options = state->options;
    bool nccl = options->format == FORMAT_NCCL, in_place = options->in_place;
    size_t last = 0, most;
    job_t out, in;

    job_open(&out, options, nccl ? false : in_place || options->op->in_place_only);
    job_open(&in, options, op_in_place_possible(options->op));
    out.comm = in.comm = state->comm;
    job_size(&out, options->last, nccl);
    most = out.nsend > out.nrecv ? out.nsend : out.nrecv;
    buffers_open(&state->buffers, most * rondo_type_size(options->type), options->offset);
    if (options->registered)
        buffers_register(&state->buffers, state->comm);
    if (options->registered && state->other)
        buffers_register(&state->buffers, state->other);
    for (size_t bytes = options->first; bytes <= options->last; bytes *= options->factor) {
        one_size(state, &out, &in, bytes, &last);
        progress_step(&progress);
        if (options->op->layout == LAYOUT_NONE)
            break;
    }
    buffers_close(&state->buffers);
    job_close(&in);
    job_close(&out);
}

/* What can be seen to be wrong only now that the ranks are counted. Every rank sees the same. */
static bool check_world(const options_t *options)
{
    const char *wrong = NULL;

    if (options->root >= world.nranks)
        wrong = "-r: the root is not a rank of this run";
    else if (options->op->layout == LAYOUT_PAIR && world.nranks < 2)
        wrong = "pingpong needs two ranks";
    if (wrong && world.rank == 0)
        fprintf(stderr, "rondo-perf: %s (%d ranks)\n", wrong, world.nranks);
    return !wrong;
}

/* All ranks have a device, or none goes on. The first that has none says so, before any of them ends. */
static bool all_devices_open(void)
{
    const char *why = device_open();
    double mine = why != NULL, *all = calloc((size_t)world.nranks, sizeof *all);
    int first = 0;

    if (!all)
        die(NULL, "no memory for %d numbers", world.nranks);
    world.gather(&mine, 1, all);
    while (first < world.nranks && all[first] == 0)
        first++;
    if (first == world.rank)
        fprintf(stderr, "rondo-perf: --device cuda: rank %d has no CUDA device: %s\n", first, why);
    world.barrier();
    free(all);
    return first == world.nranks;
}

static int run_one(const options_t *options)
{
    state_t state = {.options = options, .output = outputs[options->format]};

    if (options->op->special)
        return options->op->special(options);
    if ((options->peer == PEER_MPI && !peer_mpi_open(options)) ||
        (options->peer == PEER_NCCL && !peer_nccl_open(options)))
        return 2;
    state.comm = comm_open(NULL, "perf");
    if (options->peer == PEER_SELF)
        state.other = comm_open(options->peer_algo, "peer");
    if (world.rank == 0)
        state.output->begin(options);
    all_sizes(&state);
    if (world.rank == 0)
        state.output->end(options, state.wrong);
    if (state.other)
        (void)rondo_comm_destroy(state.other);
    (void)rondo_comm_destroy(state.comm);
    if (options->peer == PEER_MPI)
        peer_mpi_close();
    if (options->peer == PEER_NCCL)
        peer_nccl_close();
    return state.wrong > 0;
}

int run(const options_t *options)
{
    int worst = 0, total = 0;

    for (int i = 0; i < options->nops; i++) {
        options_t one = options_for(options, i);

        if (!check_world(&one))
            return 2;
        total += one.op->special ? 0 : sizes_of(&one);
    }
    if (options->algo)
        setenv("RONDO_ALGO", options->algo, 1);
    if (options->proto)
        setenv("RONDO_PROTO", options->proto, 1);
    if (options->cuda && !all_devices_open())
        return 2;
    if (world.rank == 0 && options->plot)
        plot_open(options);
    if (world.rank == 0)
        progress_begin(&progress, "rondo-perf", "sizes", total);
    for (int i = 0; i < options->nops && worst != 2; i++) {
        options_t one = options_for(options, i);
        int end = run_one(&one);

        worst = end > worst ? end : worst;
    }
    progress_clear(&progress);
    if (world.rank == 0 && options->plot && worst != 2 && !plot_close(options))
        worst = 1;
    return worst;
}
