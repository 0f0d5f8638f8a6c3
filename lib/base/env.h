/* Every tunable, in one table (env.c): name, type, default, range and one line of help. `rondo-info --env` prints it.
 * The variables are read once for each communicator, when it is made; a bad value is an error that names the variable
 * and the range. */
#ifndef RD_BASE_ENV_H
#define RD_BASE_ENV_H

#include <stdbool.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/error.h"

#define RD_ENV_BLOCKS_MOST 1024 /* of RONDO_CUDA_BLOCKS and RONDO_CUDA_BLOCKS_LEAST, and of a config's */
#define RD_ENV_PROXIES_MOST 8   /* of RONDO_PROXY_THREADS, and of config.net_channels */

typedef struct rd_env {
    int debug;          /* RONDO_DEBUG: rd_log_level_t */
    char hostid[64];    /* RONDO_HOSTID: ranks with different values are treated as on different nodes; "" : unset */
    char algo[256];     /* RONDO_ALGO: "" = chosen by cost; "ring" or "allreduce=ring,broadcast=tree" */
    char proto[128];    /* RONDO_PROTO: "", "ll", "ll,simple", "allreduce:^ll", ... */
    char transport[32]; /* RONDO_TRANSPORT: "", or a name in core/transports.c */
    char iface[64];     /* RONDO_IFACE: interface name or address to listen on */
    int port_first, port_last; /* RONDO_PORTS=first-last; 0: any */
    int64_t timeout_ms;        /* RONDO_TIMEOUT_MS: 0: never */
    int64_t timeout_first_ms;  /* RONDO_TIMEOUT_FIRST_MS: 0: never, -1: timeout_ms */
    int64_t create_timeout_ms; /* RONDO_CREATE_TIMEOUT_MS: how long creation waits for late ranks */
    int check;                 /* RONDO_CHECK */
    int monitor;               /* RONDO_MONITOR: calls are recorded for rondo-ras, and signed */
    int monitor_events;        /* RONDO_MONITOR_EVENTS: a power of two; 0: 2048 */
    char monitor_dir[256];     /* RONDO_MONITOR_DIR: the record is a file there; "": it has no name */
    char on_error[32];         /* RONDO_ON_ERROR: "return", "exit", "revoke", ... */
    char dump[32];             /* RONDO_DUMP: "none", "blamed" or "all" */
    char dump_format[64];      /* RONDO_DUMP_FORMAT: a list of "rondo", "json", "fr", "chrome" */
    int64_t dump_wait_ms;      /* RONDO_DUMP_WAIT_MS: for a dump under way; 0: not at all */
    int64_t status_ms;         /* RONDO_STATUS_MS: 0: never */
    char ras_addr[64];         /* RONDO_RAS_ADDR: "address:port"; "": none */
    char ras_key[256];         /* RONDO_RAS_KEY: a file */
    char ras_group[64];        /* RONDO_RAS_GROUP: a name or a number; "": none */
    char ras_nccl[64];         /* RONDO_RAS_NCCL: "address:port"; "": none */
    char metrics[256];         /* RONDO_METRICS: a file; "": none */
    int64_t metrics_ms;        /* RONDO_METRICS_MS */
    char dump_signal[32];      /* RONDO_DUMP_SIGNAL: USR1 or USR2; "": none */
    char dump_pipe[256];       /* RONDO_DUMP_PIPE: how its name begins; "": there is none */
    char dump_dir[256];        /* RONDO_DUMP_DIR: dumps at a failure go there; "": there are none */
    char net_plugin[256];      /* RONDO_NET_PLUGIN: a net plugin of NCCL's; "": NCCL_NET_PLUGIN says it */
    int collnet;               /* RONDO_COLLNET: -1: where a plugin serves, 1: creation fails without one, 0: never */
    char profiler[256];        /* RONDO_PROFILER: a profiler plugin of NCCL's; "": NCCL_PROFILER_PLUGIN says it */
    char nvtx[32];             /* RONDO_NVTX: "auto", "0" or "1" */
    char nan_check[32];        /* RONDO_NAN_CHECK: "0", "warn" or "fail" */
    int stacks;                /* RONDO_STACKS: the record has the stack of each call */
    int hash;                  /* RONDO_HASH: the record has hashes of what calls read and write */
    int64_t stall_ms;          /* RONDO_STALL_MS: a wait of so long is explained in the log; 0: never */
    int spin;                  /* RONDO_SPIN: polls before the first yield; -1: by local ranks and allowed cores */
    size_t slot_bytes;         /* RONDO_SLOT_BYTES: of a Simple slot; 0: by rank count and caches */
    int slots;                 /* RONDO_SLOTS: slots of a connection, 1 to 64, a power of two; 0: by rank count */
    size_t slice_bytes;        /* RONDO_SLICE_BYTES: the most that one message carries, at most a slot; 0: by cost */
    size_t ll_max;             /* RONDO_LL_MAX: chunks up to this many bytes may use LL */
    int cma;                   /* RONDO_CMA: reading a peer's memory is allowed */
    char tune[256];            /* RONDO_TUNE: a file of prices, or the name of a built-in table; "": by processor */
    char nt_store[32];         /* RONDO_NT_STORE: "", "never", "always" or "adapt" */
    size_t cma_min;            /* RONDO_CMA_MIN: messages of a pair with at least this many bytes use CMA */
    int huge_pages;            /* RONDO_HUGE_PAGES */
    char order[8];             /* RONDO_ORDER: "machine" or "rank" */
    char net[512];             /* RONDO_NET: network devices, each a rail */

    int p2p;            /* RONDO_P2P: GPUs may access each other's memory */
    size_t cuda_bank;   /* RONDO_CUDA_BANK: bytes of one of the two inboxes of a rank on a GPU; 0: 10M or what fits */
    size_t proxy_bytes; /* RONDO_PROXY_BYTES: bytes of pinned memory for a round between nodes; 0: 512K */
    size_t proxy_round; /* RONDO_PROXY_ROUND: least bytes of a round if there are many, and inside nodes; 0: 32K */
    int proxy_threads;  /* RONDO_PROXY_THREADS: threads that share an operation between nodes; 0: by cores */
    int cuda_channels;  /* RONDO_CUDA_CHANNELS: blocks of SIMPLE, each a channel to the next rank; 0: 64 */
    size_t cuda_long;  /* RONDO_CUDA_LONG: messages between GPUs with at least this many bytes use slices; 0: by cost */
    int cuda_spare;    /* RONDO_CUDA_SPARE: percent */
    int cuda_early;    /* RONDO_CUDA_EARLY: small kernels let the next one of their stream begin beside them */
    int proxy_poll_us; /* RONDO_PROXY_POLL_US: microseconds for which the proxy polls after anything has moved */
    int gdr;           /* RONDO_GDR: messages of GPUs use GDR; -1: where possible */
    size_t gdr_min;    /* RONDO_GDR_MIN: the least bytes of a message that uses GDR */
    size_t gdr_coll_min;   /* RONDO_GDR_COLL_MIN: the least bytes of a collective's messages that use GDR; 0: none do */
    size_t gdr_scratch;    /* RONDO_GDR_SCRATCH: device memory for what these receive before it is summed */
    int cuda_fifos;        /* RONDO_CUDA_FIFOS: warps of one message between GPUs; 0: by ranks and multiprocessors */
    size_t cuda_copy;      /* RONDO_CUDA_COPY: blocks with at least this many bytes are moved by copies; 0: never */
    size_t cuda_staging;   /* RONDO_CUDA_STAGING: bytes in which copy engines stage blocks; 0: 32M or what there is */
    char cta_policy[16];   /* RONDO_CTA_POLICY: "default", "efficiency" or "zero" */
    int cuda_blocks;       /* RONDO_CUDA_BLOCKS: multiprocessors that a launch may take; 0: all */
    int cuda_blocks_least; /* RONDO_CUDA_BLOCKS_LEAST: those that it takes at least */
    char ucx_tls[64];      /* RONDO_UCX_TLS: UCX's transports between nodes */
    char ofi_provider[32]; /* RONDO_OFI_PROVIDER: libfabric's provider between nodes */
    int traffic_class;     /* RONDO_TRAFFIC_CLASS: of packets between nodes; -1: the network's own */
    int nccl_host;         /* RONDO_NCCL_HOST: read in lib/nccl */
    int64_t nccl_stall_ms; /* RONDO_NCCL_STALL_MS: how long a stream stalls behind another rank's end; 0: it does not */
    bool where_served;     /* no variable: what is forced applies where it can serve (rd_forced_between), and is */
    char between[1024];    /* this in place of `algo`: it names every operation, so it may be longer */
    const struct rd_env *otherwise; /* what applies where that cannot serve; NULL: nothing is forced then */
    char topo_file[256];            /* RONDO_TOPO_FILE: a recorded machine instead of this one: hwloc XML, or GPUs */
    char topo_dump_file[256];       /* RONDO_TOPO_DUMP_FILE: NCCL's XML of this machine, which ... */
    int topo_dump_rank;             /* RONDO_TOPO_DUMP_FILE_RANK ... writes */
    char graph_file[256];      /* RONDO_GRAPH_FILE: NCCL's XML of a ring that is taken in place of the searched one */
    char graph_dump_file[256]; /* RONDO_GRAPH_DUMP_FILE: the ring in use, which ... */
    int graph_dump_rank;       /* RONDO_GRAPH_DUMP_FILE_RANK ... writes */
} rd_env_t;

/* The policy as a number, RONDO_CTA_POLICY_*. */
static inline int rd_cta_policy(const rd_env_t *env)
{
    return env->cta_policy[0] == 'z'   ? RONDO_CTA_POLICY_ZERO
           : env->cta_policy[0] == 'e' ? RONDO_CTA_POLICY_EFFICIENCY
                                       : RONDO_CTA_POLICY_DEFAULT;
}

void rd_cta_policy_set(rd_env_t *env, int policy);

/* Fills `env`, but only if it succeeds. Also sets the level of the log and warns, once for each process, of every
 * RONDO_ variable that is unknown. */
rondo_result_t rd_env_read(rd_env_t *env);

/* Checks whether `value` (NULL or "": none) is allowed for the variable `name`. */
rondo_result_t rd_env_check(const char *name, const char *value);

/* The name of the variable number `index`; NULL behind the last. */
const char *rd_env_name(int index);
/* The default as it would be written; NULL: there is no such variable. */
const char *rd_env_default(const char *name);

/* The settings that decide which messages are sent, in a form that ranks may exchange: all must have the same. */
#define RD_ENV_ALIKE 608
typedef struct rd_env_alike {
    char values[RD_ENV_ALIKE];
} rd_env_alike_t;
void rd_env_alike(const rd_env_t *env, rd_env_alike_t *alike);

/* Returns NULL, or the name of the first variable in which two ranks differ, with its values as they would be set. */
#define RD_ENV_TEXT 264
const char *rd_env_difference(const rd_env_alike_t *a, const rd_env_alike_t *b, char a_text[RD_ENV_TEXT],
                              char b_text[RD_ENV_TEXT]);

/* Prints the table: name, range, default, current value, and what the variable does. A bad value is marked as such. */
void rd_env_print(FILE *file);

#endif
