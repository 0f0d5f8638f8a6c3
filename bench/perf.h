/* rondo-perf: what its files share.
 *
 * One run: options (options.c) choose an operation (operations.c); a world (launch_fork.c or launch_mpi.c) holds the
 * ranks together beside the library that is measured; a job is one operation at one size with its buffers (buffers.c);
 * timing.c runs it in turns with the peer (peer_mpi.c, or a second communicator), statistics.c makes a row of the
 * turns, output_*.c print it. Only public headers of rondo are seen here: what this program can do, a user can. */
#ifndef PERF_H
#define PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <rondo.h>

/* ---- options.c ---- */

typedef enum { FORMAT_TABLE, FORMAT_OSU, FORMAT_NCCL, FORMAT_JSON } format_t;
typedef enum { PEER_NONE, PEER_MPI, PEER_SELF, PEER_COPY, PEER_NCCL } peer_kind_t;

typedef struct op op_t;

#define OPS_MOST 24

typedef struct options {
    const op_t *ops[OPS_MOST]; /* in the order in which they are measured */
    int nops;
    const op_t *op; /* the one that is measured now: ops[number] */
    int number;
    size_t first, last, factor; /* sizes in bytes */
    rondo_type_t type;
    rondo_op_t reduction;
    int root;
    int iters;      /* calls a turn; 0: chosen so that a turn takes turn_ms */
    int warmup;     /* calls before anything is timed, at each size */
    int turns;      /* of each side */
    int window;     /* messages each way in a call of bandwidth */
    int pieces;     /* operations, in one group, that a call's data are divided among */
    double turn_ms; /* what an automatic turn takes */
    bool verify, in_place, registered, skew;
    bool full;        /* osu: the columns that osu_* prints with its own -f */
    bool percentiles; /* a further run that times every call */
    size_t offset;    /* bytes past a page at which buffers begin */
    format_t format;
    peer_kind_t peer;
    const char *peer_algo; /* of --peer self:ALGO */
    const char *algo, *proto;
    bool cuda, graph, symmetric; /* symmetric: of --peer nccl:symmetric */
    const char *nccl;            /* its library; NULL: what the loader finds */
    int ranks;                   /* to fork; 0: MPI's */
    const char *plot, *bound;    /* files: the picture, and what the machine itself gives */
    char command[512];
    bool plant_error; /* spoils one element of each result, to show that verification sees it */
} options_t;

/* Returns 0 to go on, else what to exit with, plus one: 1 after --help, 3 after a usage error. Says why on standard
 * error if `loud`: every rank parses, one speaks. */
int options_parse(options_t *options, int argc, char **argv, bool loud);
/* The options for ops[number] alone, with that operation's own last size. */
options_t options_for(const options_t *options, int number);
const char *type_name(rondo_type_t type);      /* float32 */
const char *type_nccl_name(rondo_type_t type); /* float */
const char *reduction_name(rondo_op_t reduction);

/* ---- launch_fork.c, launch_mpi.c: the ranks, and what they tell each other outside rondo ---- */

typedef struct world {
    int rank, nranks;
    int *pids;            /* of the ranks */
    const char *launcher; /* "fork" or "mpi" */
    void (*barrier)(void);
    void (*gather)(const double *mine, int n, double *all); /* all[rank * n + i], on every rank */
    rondo_result_t (*comm_create)(rondo_comm_t *comm, const rondo_config_t *config);
    void *(*shared)(size_t bytes); /* zeroed memory that all ranks see; NULL if they cannot */
    void (*abort)(int status);     /* ends all ranks */
    void (*end)(void);
} world_t;

extern world_t world; /* one a process */

/* Makes `nranks` ranks by fork. The caller's process only waits for them and exits with the worst of their exits: it
 * returns in the ranks alone. */
void world_start_fork(int nranks);
bool world_mpi_launched(void); /* did an mpirun start this process? */
bool world_start_mpi(int *argc, char ***argv);

double now(void); /* seconds */
/* Prints the sentence and rondo's own, ends all ranks with exit code 1. */
_Noreturn void die(rondo_comm_t comm, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- operations.c ---- */

/* Who holds how much, and who gets what: all that buffers and verification need to know of an operation. */
typedef enum {
    LAYOUT_ALL,      /* count in, count out on every rank, reduced */
    LAYOUT_TO_ROOT,  /* the same, out on the root alone */
    LAYOUT_BCAST,    /* the root's count, out on every rank */
    LAYOUT_COLLECT,  /* a block in, every rank's blocks out */
    LAYOUT_SHARE,    /* a block for every rank in, one out, reduced */
    LAYOUT_EXCHANGE, /* a block for every rank in, a block of every rank out */
    LAYOUT_GATHER,   /* a block in, every rank's out on the root */
    LAYOUT_SCATTER,  /* a block for every rank in on the root, one out */
    LAYOUT_RING,     /* count to the next rank, count from the one before */
    LAYOUT_PAIR,     /* count from rank 0 to rank 1 and back */
    LAYOUT_NONE
} layout_t;

#define WINDOW_MOST 1024

typedef struct job job_t;
typedef int (*call_t)(const job_t *job); /* 0, or what went wrong */

struct op {
    const char *name, *alias;
    const char *osu_title;  /* "Allreduce Latency Test" */
    const char *nccl_title; /* "all_reduce_perf" */
    layout_t layout;
    bool reduces, rooted, ragged; /* ragged: a v-operation, counts by rank */
    bool in_place_only;           /* broadcast: MPI knows no other, so out of place would compare a copy */
    bool windowed;                /* --window messages in a call, of which one is shown */
    double per_call;              /* the part of a call that is shown: of pingpong a half */
    call_t call;
    int (*special)(const options_t *options); /* not a loop over sizes: call, create */
    const char *help;
};

/* One operation at one size on this rank. */
struct job {
    const op_t *op;
    rondo_comm_t comm;
    void *send, *recv;
    const void *spare;           /* the area that recv is not in */
    char *host_send, *host_recv; /* where their contents are made and looked at: the same on host memory */
    struct buffers *buffers;
    rondo_stream_t stream;
    size_t count; /* elements, as the call takes them */
    rondo_type_t type;
    rondo_op_t reduction;
    int root, rank, nranks;
    int messages; /* each way */
    /* With --pieces: how many there are, and how one is called, or a group of them (NULL: there are none). */
    int pieces;
    call_t piece;
    int (*group_start)(void), (*group_end)(void);
    bool in_place, skew;
    size_t bytes;        /* the size that is shown */
    size_t moved;        /* bytes from which bandwidths come: nccl-tests' size */
    size_t nsend, nrecv; /* elements of this rank's buffers */
    size_t *sendcounts, *sdispls, *recvcounts, *rdispls;
};

/* A stretch of a result: recv[at .. at+count) must hold `from`'s input from `first` on, or all ranks' reduced. */
#define FROM_ALL (-1)
typedef struct segment {
    size_t at, count, first;
    int from;
} segment_t;

extern const op_t operations[]; /* ends with a NULL name */
const op_t *op_find(const char *name);
bool op_in_place_possible(const op_t *op);
double op_bus_factor(const op_t *op, int nranks); /* bus bandwidth / algorithm bandwidth, as nccl-tests */
/* Sets count, bytes, moved, nsend, nrecv and the four arrays for a requested size. In OSU's meaning a size is one
 * rank's message (reduce-scatter: its whole input); in nccl-tests' meaning the larger of the buffers. */
void job_size(job_t *job, size_t bytes, bool nccl_meaning);
/* The operation in pieces: a call_t. */
int job_in_pieces(const job_t *job);
bool job_segment(const job_t *job, int i, segment_t *segment); /* false after the last */
void job_open(job_t *job, const options_t *options, bool in_place);
void job_close(job_t *job);

/* ---- numbers.c: values of every type, exact enough to be compared bit by bit ---- */

#define VALUE_PERIOD 1021 /* prime: values repeat after so many elements */

typedef struct value {
    double a, b; /* b: the imaginary part, or a pair's index */
} value_t;

value_t value_of(const job_t *job, int rank, size_t i);
value_t value_reduced(const job_t *job, size_t i); /* over all ranks */
void value_store(rondo_type_t type, void *to, value_t value);
bool value_equal(const job_t *job, const void *got, value_t expected);

/* ---- buffers.c ---- */

typedef struct buffers {
    char *area[2];   /* send, recv; each guarded at both ends */
    char *device[2]; /* the same on the device; NULL: on host memory */
    size_t bytes, mapped, offset;
    struct {
        rondo_comm_t comm;
        rondo_registration_t area[2];
    } reg[2]; /* with this rank's communicators, from the first; NULL behind the last */
} buffers_t;

/* Collective: ends all ranks where those of one machine want more memory than it has free. */
void buffers_open(buffers_t *buffers, size_t bytes, size_t offset);
void buffers_register(buffers_t *buffers, rondo_comm_t comm);
void buffers_close(buffers_t *buffers);
void buffers_place(buffers_t *buffers, job_t *job); /* sets job->send, job->recv and the guards */
int buffers_copy(const job_t *job);                 /* the peer of --peer copy: memory's own time for the result */
void buffers_fill(job_t *job);                      /* input, and a result that is wrong everywhere */
void buffers_clear(job_t *job);                     /* zeros, for timing in place: sums do not grow */
void buffers_fetch(const job_t *job);               /* from the device, to be looked at */
size_t buffers_wrong(const job_t *job);

/* ---- timing.c, statistics.c ---- */

typedef struct stats {
    double median, low, high; /* seconds; low and high are quartiles */
    double min, max;
} stats_t;

typedef struct side {
    call_t call;
    const job_t *job;
    long iters;
    void *graph;      /* of GRAPH_CALLS calls; NULL: they are made one by one */
    double *turns;    /* seconds a call, in each turn, the slowest rank's */
    stats_t time;     /* of the turns */
    double rank_mean; /* over the ranks that take part, of each rank's median */
    double rank_min, rank_max;
    double p50, p99, slowest; /* seconds, of single calls (timing_percentiles) */
} side_t;

typedef struct row {
    size_t bytes, count, moved;
    long iters;
    side_t mine, peer;
    bool has_peer;
    stats_t ratio; /* peer / mine: above 1, rondo is faster */
    long wrong;    /* elements, over all ranks; -1: not looked at */
    long peer_wrong;
} row_t;

void stats_of(stats_t *stats, const double *values, int n);
double percentile(double *values, int n, double fraction); /* sorts */
/* Collective: what the ranks' numbers come to. */
double sum_of_ranks(double mine);
double most_of_ranks(double mine);
/* Runs both sides in turns (a peer without a call is left out) and fills their times. Collective. */
void timing_run(side_t *mine, side_t *peer, const options_t *options);
void timing_ratio(stats_t *ratio, const side_t *mine, const side_t *peer, int turns); /* of each turn: peer / mine */
void timing_percentiles(side_t *side);                                                /* collective */

/* ---- peer_mpi.c, peer_none.c ---- */

bool peer_mpi_open(const options_t *options); /* false, with a sentence, if MPI cannot do this */
call_t peer_mpi_call(const job_t *job);       /* NULL if MPI cannot do this size; reads the job's counts */
void peer_mpi_close(void);
const char *peer_mpi_version(void);

/* ---- peer_nccl.c: as peer_mpi.c ---- */

bool peer_nccl_open(const options_t *options);
call_t peer_nccl_call(const job_t *job);
void peer_nccl_close(void);
const char *peer_nccl_version(void);
int peer_nccl_group_start(void);
int peer_nccl_group_end(void);
void *peer_nccl_memory(size_t bytes);     /* collective: in a symmetric window; NULL: not asked for */
bool peer_nccl_memory_back(void *memory); /* false: it is not NCCL's */

/* ---- device_cuda.c, device_none.c: this rank's GPU; on host memory all of it does nothing ---- */

#define GRAPH_CALLS 20 /* in one graph */
bool device_built(void);
const char *device_open(void); /* NULL, or why there is none */
int device_number(void);
rondo_stream_t device_stream(void);
void *device_allocate(size_t bytes);
void device_free(void *memory);
void device_copy(void *to, const void *from, size_t bytes); /* and waits */
void device_wait(void);
void device_launch(void); /* an empty kernel, into the stream */
double device_held(void); /* bytes of the GPU's memory that are in use */
void *device_record(call_t call, const job_t *job, int calls);
void device_replay(void *graph);
void device_forget(void *graph);

/* ---- special.c: operations that are no loop over sizes ---- */

int special_call(const options_t *options);
int special_create(const options_t *options);

/* ---- machine.c: what the numbers belong to ---- */

typedef struct machine {
    char cpu[128], system[128];
    int cores, allowed; /* of the machine; that rank 0 may run on */
    long memory_mb;
} machine_t;

void machine_describe(machine_t *machine);
double machine_id(void);   /* the same on all ranks of a machine, and on no others */
double machine_free(void); /* bytes that could be had without swapping, as far as the system says */
double machine_held(void); /* bytes of memory that this process holds, its part of what is shared */

/* ---- output_*.c: called on rank 0 alone ---- */

typedef struct output {
    void (*begin)(const options_t *options);
    void (*row)(const options_t *options, const row_t *out, const row_t *in); /* in: nccl's second half, else NULL */
    void (*end)(const options_t *options, long wrong);
} output_t;

extern const output_t output_table, output_osu, output_nccl, output_json;

/* ---- plot.c: as output_*.c ---- */

void plot_open(const options_t *options);
void plot_row(const options_t *options, const row_t *row);
bool plot_close(const options_t *options); /* false, with a sentence: nothing was written */

/* ---- run.c ---- */

/* Collective; ends all ranks where it fails. `algo`: what RONDO_ALGO is meanwhile; NULL: what it is. */
rondo_comm_t comm_open(const char *algo, const char *name);
int run(const options_t *options);

#endif
