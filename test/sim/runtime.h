/* A CUDA runtime made of host memory and threads: the functions that lib/cuda and its tests call, so that both run, and
 * are tested, where there is no GPU. Streams are worker threads with a queue each, so whatever CUDA does not order
 * happens in any order here too; kernels are run by the machine (machine.h). What CUDA forbids during capture fails
 * here as well, cudaFree waits for whatever runs on the device, and events, forks, joins and user objects work.
 *
 * Device memory is a memfd, so that another process may import it. A test that wants to know what is left looks at
 * sim_live. Beside this header there is only CUDA's own.
 */
#ifndef SIM_RUNTIME_H
#define SIM_RUNTIME_H

#include <cuda_runtime_api.h>
#include <pthread.h>

/* How many devices there are: SIM_DEVICES in the environment, else 4. */
/* Objects that have been made and not been destroyed in this process, with their names in `text`. */
int sim_live(char *text, size_t size);
/* The devices that this process has gone to, a bit each: on a GPU each of them costs it a context's memory. */
unsigned sim_contexts(void);
/* The calling thread's context; NULL: it has none. The second one gives it another than the device's primary one. */
void *sim_context(void);
void *sim_context_own(int device);
/* What cudaDeviceReset does to the device's context. */
void sim_context_reset(int device);
/* A stream's operations wait a little, at random, before they begin. 0: never. */
void sim_jitter(unsigned seed);

/* ---- between the files of the runtime ---- */

extern pthread_mutex_t sim_lock; /* everything below */
extern pthread_cond_t sim_moved; /* something has completed */

/* As realloc, or memory that is zero if `old` is NULL. It is not what a test refuses (poor.h). */
void *sim_memory(void *old, size_t bytes);

enum { SIM_ALLOCATION, SIM_STREAM, SIM_EVENT, SIM_GRAPH, SIM_EXEC, SIM_USER_OBJECT, SIM_IMPORT, SIM_KINDS };
void sim_count(int kind, int by);

/* A point in a stream, complete or not. Counted. */
typedef struct sim_mark {
    int refs, done;
    long long when_ns; /* it was completed */
} sim_mark_t;

typedef enum { SIM_KERNEL, SIM_COPY, SIM_SET, SIM_RECORD, SIM_WAIT, SIM_HOST, SIM_LAUNCH, SIM_RELEASE } sim_kind_t;

/* What a stream or a graph node does. */
typedef struct sim_op {
    struct sim_op *next;
    sim_kind_t kind;
    const void *function; /* KERNEL */
    unsigned blocks, threads;
    size_t shared;
    void *work; /* KERNEL: a copy of the argument */
    void *to;   /* COPY, SET, RELEASE */
    const void *from;
    size_t bytes;
    int value;
    sim_mark_t *mark; /* WAIT: for what */
    sim_mark_t *done; /* set when the op is complete */
    sim_mark_t *begun; /* KERNEL: set when it begins; NULL: nobody wants to know */
    cudaEvent_t event; /* RECORD, WAIT: of a graph node */
    cudaHostFn_t host;
    void *user;
    struct sim_run *run; /* LAUNCH */
} sim_op_t;

struct sim_capture;

struct CUstream_st {
    int device, blocking, closing;
    unsigned long long id;
    pthread_t worker;
    sim_op_t *first, *last;
    sim_mark_t *tail; /* of the last op enqueued; NULL: none yet */
    struct sim_capture *capture;
    cudaGraphNode_t *deps; /* of the next op captured */
    size_t ndeps;
    const void *let_in;       /* by the communicator's last kernel, here or in a capture: the communicator's memory */
    struct CUstream_st *next; /* of all */
};

struct CUevent_st {
    int timed;                   /* made without cudaEventDisableTiming */
    sim_mark_t *mark;            /* the last record; NULL: never recorded, which counts as complete */
    struct sim_capture *capture; /* recorded in a capture: these nodes */
    cudaGraphNode_t *deps;
    size_t ndeps;
};

/* Performs it, in the calling thread, without the lock. */
void sim_op_run(sim_op_t *op);
void sim_op_free(sim_op_t *op);
void sim_copy(const sim_op_t *op); /* with what SIM_BROKEN says */
/* Into the stream's queue, or its capture. Takes over the op. With the lock. */
cudaError_t sim_enqueue(cudaStream_t stream, sim_op_t *op);
sim_op_t *sim_op_new(sim_kind_t kind);
cudaStream_t sim_stream(cudaStream_t stream); /* the default streams by their special values */
void sim_finish(sim_op_t *op); /* says that it is complete; with the lock */
void sim_mark_drop(sim_mark_t *mark);
sim_mark_t *sim_mark_new(void);
sim_mark_t *sim_mark_keep(sim_mark_t *mark);
/* Waits until the device has nothing to do. With the lock. */
void sim_drain(int device);
/* CUDA forbids this call while a capture is under way that this thread must respect. With the lock. */
int sim_forbidden(void);

/* The graph under capture: adds the op behind the stream's dependencies. With the lock. */
cudaError_t sim_capture_add(cudaStream_t stream, sim_op_t *op);
cudaError_t sim_capture_spoil(cudaStream_t stream);
cudaError_t sim_capture_record(cudaStream_t stream, cudaEvent_t event, int external);
cudaError_t sim_capture_wait(cudaStream_t stream, cudaEvent_t event, int external);
void sim_run_all(struct sim_run *run);
void sim_run_free(struct sim_run *run);
void sim_release(void *pointer);
sim_op_t *sim_op_copy(const sim_op_t *op);

cudaError_t sim_error(cudaError_t code); /* also for cudaGetLastError */
int sim_current(void);
int sim_devices(void);
int sim_reaches(int device, int peer);

/* The driver's cuMemGetAddressRange and cuPointerGetAttribute. */
int sim_address_range(unsigned long long *base, size_t *bytes, unsigned long long pointer);
int sim_attribute(void *value, int which, unsigned long long pointer);

#endif
