/* The tunables. One table contains everything about each: where its value lies, how it is written, what is allowed, its
 * default, whether ranks must agree on it, and one line of help. Reading, comparing and printing walk the table and
 * know no variable by name. */
#include "base/env.h"
#include "base/env_alias.h"
#include "base/env_unknown.h"
#include "base/proto.h"
#include "base/setting.h"
#include "base/word_list.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum { LEVEL, TEXT, WORD, WORDS, PROTO, PORTS, INT, MILLISECONDS, BYTES, COUNT, FLAG } kind_t;

typedef struct tunable {
    const char *name;
    kind_t kind;
    int alike;            /* ranks must agree on it */
    size_t offset, bytes; /* in rd_env_t; bytes == 0: it is read elsewhere and only listed here */
    const char *standard; /* the default, as it would be written */
    int64_t least, most;
    const char *words; /* WORD: what is allowed, separated by '|'; WORDS: a list of them, separated by ',' */
    const char *help;
} tunable_t;

#define RANGE_TEXT 128
#define AT(field) offsetof(rd_env_t, field), sizeof(((rd_env_t *)0)->field)

/* BYTES are multiples of 64; COUNT is a power of two; 0 is always allowed for both and means "chosen". */
static const tunable_t table[] = {
    {"RONDO_DEBUG", LEVEL, 0, AT(debug), "warn", 0, 0, "none|warn|info|plan|trace",
     "how much is logged on standard error"},
    {"RONDO_DEBUG_FILE", TEXT, 0, 0, 0, "", 0, 511, NULL,
     "log lines go to this file; %h is the host, %p the process, %% a %"},
    {"RONDO_HOSTID", TEXT, 0, AT(hostid), "", 0, 63, NULL, "ranks with different values count as on different nodes"},
    {"RONDO_ALGO", TEXT, 1, AT(algo), "", 0, 255, NULL, "forces an algorithm: ring, or allreduce=ring,broadcast=tree"},
    {"RONDO_PROTO", PROTO, 1, AT(proto), "", 0, 127, NULL,
     "forces a protocol; creation fails if there is none of this name for the memory of the ranks"},
    {"RONDO_TRANSPORT", TEXT, 1, AT(transport), "", 0, 31, NULL, "forces a transport: shm, ucx, ofi or plugin"},
    {"RONDO_IFACE", TEXT, 0, AT(iface), "", 0, 63, NULL, "interface name or address to listen on"},
    {"RONDO_PORTS", PORTS, 0, AT(port_first), "0", 0, 65535, NULL, "first-last: TCP ports to listen on; 0: any"},
    {"RONDO_TIMEOUT_MS", MILLISECONDS, 0, AT(timeout_ms), "0", 0, INT64_C(1) << 40, NULL,
     "an operation that waits longer for a live rank fails; 0: never"},
    {"RONDO_TIMEOUT_FIRST_MS", MILLISECONDS, 0, AT(timeout_first_ms), "-1", -1, INT64_C(1) << 40, NULL,
     "the same until a communicator's first call is over; -1: as later"},
    {"RONDO_CREATE_TIMEOUT_MS", MILLISECONDS, 0, AT(create_timeout_ms), "120000", 1, INT64_C(1) << 40, NULL,
     "how long making a communicator waits for late ranks"},
    {"RONDO_CHECK", FLAG, 1, AT(check), "0", 0, 1, NULL, "compares every call across ranks before data moves"},
    {"RONDO_MONITOR", FLAG, 1, AT(monitor), "1", 0, 1, NULL,
     "each process keeps a record of its calls that rondo-ras reads, while it runs and after; what ranks call is "
     "compared"},
    {"RONDO_MONITOR_EVENTS", COUNT, 0, AT(monitor_events), "2048", 64, 1 << 20, NULL,
     "calls that the record holds, of 128 bytes; equal calls in a row are one; 0: 2048"},
    {"RONDO_MONITOR_DIR", TEXT, 0, AT(monitor_dir), "", 0, 255, NULL,
     "the record is a file in this folder, which is the user's alone, and outlives the last rank of a node"},
    {"RONDO_ON_ERROR", WORD, 0, AT(on_error), "return", 0, 31, "return|exit|revoke|revoke-exit|report",
     "what a call does whose communicator has failed. exit: it ends the process, with status 134, also where none can "
     "be made; revoke: it fails all other communicators of the process, too; revoke-exit: both; report: a time limit "
     "that is over is said in the log, and the call waits on"},
    {"RONDO_DUMP", WORD, 0, AT(dump), "blamed", 0, 31, "none|blamed|all",
     "of whom the last calls are left in RONDO_DUMP_DIR: of each node the lowest rank, who is to blame, and who finds "
     "it"},
    {"RONDO_DUMP_DIR", TEXT, 0, AT(dump_dir), "", 0, 255, NULL,
     "when a communicator fails, the last calls are left in a folder in this one, for rondo-ras analyse"},
    {"RONDO_DUMP_FORMAT", WORDS, 0, AT(dump_format), "rondo", 0, 63, "rondo|json|fr|chrome",
     "of dumps in RONDO_DUMP_DIR, one or several by comma; rondo: json, of which the others can be made; fr: for "
     "PyTorch's analyser; chrome: for Perfetto"},
    {"RONDO_DUMP_WAIT_MS", MILLISECONDS, 0, AT(dump_wait_ms), "1000", 0, INT64_C(1) << 40, NULL,
     "how long a call that has failed, and then the end of the process, wait for a dump that is being written"},
    {"RONDO_DUMP_SIGNAL", WORD, 0, AT(dump_signal), "", 0, 31, "USR1|USR2",
     "a process that gets this signal leaves its last calls in RONDO_DUMP_DIR; an older handler is called, too"},
    {"RONDO_DUMP_PIPE", TEXT, 0, AT(dump_pipe), "", 0, 255, NULL,
     "each process makes a named pipe of this name, its rank, and .pipe: a byte in it is as RONDO_DUMP_SIGNAL"},
    {"RONDO_STATUS_MS", MILLISECONDS, 0, AT(status_ms), "0", 0, INT64_C(1) << 40, NULL,
     "so often each communicator says in the log how far this rank is with it; 0: never"},
    {"RONDO_METRICS", TEXT, 0, AT(metrics), "", 0, 255, NULL,
     "a file of each process for Prometheus, as rondo.prom; %h is the host, %p the process, %r its rank in the job, "
     "which is put before the ending where neither of the two is there"},
    {"RONDO_METRICS_MS", MILLISECONDS, 0, AT(metrics_ms), "15000", 1, INT64_C(1) << 40, NULL,
     "so often that file is replaced"},
    {"RONDO_RAS_ADDR", TEXT, 0, AT(ras_addr), "", 0, 63, NULL,
     "address:port at which rondo-ras --host may ask over TCP, one process of each node; needs RONDO_RAS_KEY"},
    {"RONDO_RAS_KEY", TEXT, 0, AT(ras_key), "", 0, 255, NULL,
     "a file with the secret that RONDO_RAS_ADDR asks for, of at least 32 bytes, which is the user's alone (0600)"},
    {"RONDO_RAS_GROUP", TEXT, 0, AT(ras_group), "", 0, 63, NULL,
     "a group, by name or number, whose members may ask with rondo-ras --user, besides the user and root"},
    {"RONDO_RAS_NCCL", TEXT, 0, AT(ras_nccl), "", 0, 63, NULL,
     "address:port, of loopback, at which NCCL's client ncclras may ask, as localhost:28028; NCCL_RAS_ADDR sets it"},
    {"RONDO_NVTX", WORD, 0, AT(nvtx), "auto", 0, 31, "auto|0|1",
     "each call is a range of NVTX, for Nsight Systems and the like; auto: if a tool asks for it "
     "(NVTX_INJECTION64_PATH)"},
    {"RONDO_NAN_CHECK", WORD, 0, AT(nan_check), "0", 0, 31, "0|warn|fail",
     "inputs in host memory are looked through for values that are not a number: a line in the log once for each kind "
     "of call, or RONDO_ERR_NAN"},
    {"RONDO_STACKS", FLAG, 0, AT(stacks), "0", 0, 1, NULL,
     "the record has the stack of functions from which each call was made: dumps have it, and the log that of a call "
     "that fails"},
    {"RONDO_HASH", FLAG, 0, AT(hash), "0", 0, 1, NULL,
     "the record has a hash of what each call reads and writes in host memory: rondo-ras analyse says where ranks that "
     "should have got the same differ"},
    {"RONDO_PROFILER", TEXT, 0, AT(profiler), "", 0, 255, NULL,
     "a profiler plugin for NCCL, as a file or a name, or none; by default what NCCL_PROFILER_PLUGIN names"},
    {"RONDO_STALL_MS", MILLISECONDS, 0, AT(stall_ms), "10000", 0, INT64_C(1) << 40, NULL,
     "a call that waits so long says in the log who holds it up, and again after 2, 4, 8 times as long; 0: never"},
    {"RONDO_SPIN", INT, 0, AT(spin), "-1", -1, 100000000, NULL,
     "polls before a wait yields the core; -1: chosen by the numbers of ranks and cores, and for 20 us at most"},
    {"RONDO_SLOT_BYTES", BYTES, 1, AT(slot_bytes), "0", 64, 16 << 20, NULL,
     "bytes of a slot, that is, of the largest message; 0: chosen by ranks and caches"},
    {"RONDO_SLOTS", COUNT, 1, AT(slots), "0", 1, 64, NULL, "slots of a connection; 0: chosen by the number of ranks"},
    {"RONDO_SLICE_BYTES", BYTES, 1, AT(slice_bytes), "0", 64, 16 << 20, NULL,
     "bytes that one message carries, at most a slot; 0: chosen by cost"},
    {"RONDO_LL_MAX", BYTES, 1, AT(ll_max), "2048", 64, RD_LL_MOST, NULL,
     "largest message that may go by protocol ll; 0: none"},
    {"RONDO_CMA", FLAG, 1, AT(cma), "1", 0, 1, NULL, "ranks of a node may read each other's memory (process_vm_readv)"},
    {"RONDO_CMA_MIN", BYTES, 1, AT(cma_min), "16384", 64, 1 << 30, NULL,
     "shortest message of send, recv and alltoall that goes by protocol cma"},
    {"RONDO_TUNE", TEXT, 0, AT(tune), "", 0, 255, NULL,
     "prices of the cost model: a file of rondo-tune, or xeon, xeon-many or zen; by default the processor's"},
    {"RONDO_NT_STORE", WORD, 0, AT(nt_store), "", 0, 31, "never|always|adapt",
     "whether slots are written past the caches; adapt: where a plain write proves slow; the default depends on the "
     "processor"},
    {"RONDO_HUGE_PAGES", FLAG, 0, AT(huge_pages), "1", 0, 1, NULL, "shared memory asks for huge pages"},
    {"RONDO_ORDER", WORD, 1, AT(order), "machine", 0, 7, "machine|rank",
     "how rings and trees visit the ranks: node by node and NUMA node by NUMA node, GPUs of a node by their links, or "
     "by number"},
    {"RONDO_NET", TEXT, 0, AT(net), "", 0, 511, NULL,
     "network devices that the ranks of a node share evenly, near ones first: eth0,eth1; by default the bootstrap's"},

    {"RONDO_P2P", FLAG, 1, AT(p2p), "1", 0, 1, NULL,
     "GPUs may access each other's memory; 0: all data goes through pinned host memory"},
    {"RONDO_CUDA_BANK", BYTES, 1, AT(cuda_bank), "0", 16384, 16 << 20, NULL,
     "bytes of each of the two inboxes that a rank has on its GPU; 0: as many as the GPU has room for, 10M at most"},
    {"RONDO_PROXY_BYTES", BYTES, 1, AT(proxy_bytes), "0", 4096, 64 << 20, NULL,
     "bytes of the largest pipelined round between nodes; 0: 512K, from 128 ranks on up to 2M"},
    {"RONDO_PROXY_ROUND", BYTES, 1, AT(proxy_round), "0", 1024, 64 << 20, NULL,
     "minimum bytes of a pipelined round between nodes, and the length from which operations use the GPUs' own links "
     "inside nodes; 0: 32K"},
    {"RONDO_PROXY_THREADS", INT, 1, AT(proxy_threads), "0", 0, RD_ENV_PROXIES_MOST, NULL,
     "proxy channels (threads, each with connections of its own) that share an operation between nodes; 0: chosen by "
     "cores"},
    {"RONDO_PROXY_POLL_US", INT, 0, AT(proxy_poll_us), "500", 0, 1000000, NULL,
     "microseconds for which a proxy thread polls after anything has moved before it sleeps"},
    {"RONDO_GDR", INT, 1, AT(gdr), "-1", -1, 1, NULL,
     "zero-copy messages between GPUs of different nodes (GDR); -1: if a fast path is found, 1: creation fails without "
     "one, 0: never"},
    {"RONDO_GDR_MIN", BYTES, 1, AT(gdr_min), "65536", 64, 1 << 30, NULL,
     "shortest message between GPUs of different nodes that goes by GDR"},
    {"RONDO_GDR_COLL_MIN", BYTES, 1, AT(gdr_coll_min), "262144", 64, INT64_C(1) << 40, NULL,
     "bytes that a collective between nodes sends to each rank, from which it goes by GDR: twice as many if it has two "
     "hops; 0: none does"},
    {"RONDO_GDR_SCRATCH", BYTES, 1, AT(gdr_scratch), "67108864", 64 << 10, INT64_C(1) << 40, NULL,
     "bytes of device memory in which collectives by GDR receive what is to be summed"},
    {"RONDO_CUDA_FIFOS", COUNT, 1, AT(cuda_fifos), "0", 1, 512, NULL,
     "warps that share a message between two GPUs; 0: chosen by the number of ranks"},
    {"RONDO_CUDA_CHANNELS", INT, 1, AT(cuda_channels), "0", 0, 64, NULL,
     "multiprocessors that a long collective by protocol simple uses; a ring uses three quarters of them; 0: 64"},
    {"RONDO_CUDA_LONG", BYTES, 1, AT(cuda_long), "0", 64, INT64_C(1) << 40, NULL,
     "bytes from which a message between GPUs of a node goes by protocol simple; 0: chosen by cost"},
    {"RONDO_CUDA_SPARE", INT, 1, AT(cuda_spare), "3", 0, 1000, NULL,
     "percent of its time that an operation may lose by protocol simple, which leaves multiprocessors to other "
     "kernels"},
    {"RONDO_CUDA_EARLY", FLAG, 0, AT(cuda_early), "1", 0, 1, NULL,
     "short operations let the next kernel of their stream begin beside them, where a communicator is alone on its "
     "GPU"},
    {"RONDO_CUDA_COPY", BYTES, 1, AT(cuda_copy), "0", 64, INT64_C(1) << 40, NULL,
     "bytes from which allgather, alltoall, broadcast, gather and scatter use copy engines; the buffers of the first "
     "three must be registered alike, if RONDO_CTA_POLICY is default; 0: as that says"},
    {"RONDO_CUDA_STAGING", BYTES, 1, AT(cuda_staging), "0", 16384, 64 << 20, NULL,
     "bytes of a rank's window through which copy engines move what is not registered; 0: all that slices have there, "
     "32M at most"},
    {"RONDO_CTA_POLICY", WORD, 1, AT(cta_policy), "default", 0, 15, "default|efficiency|zero",
     "multiprocessors that operations take from the program's kernels: efficiency: fewer for at most a tenth more "
     "time, "
     "zero: none where copy engines can do it"},
    {"RONDO_CUDA_BLOCKS", INT, 1, AT(cuda_blocks), "0", 0, RD_ENV_BLOCKS_MOST, NULL,
     "multiprocessors that one launch may use; 0: all"},
    {"RONDO_CUDA_BLOCKS_LEAST", INT, 1, AT(cuda_blocks_least), "0", 0, RD_ENV_BLOCKS_MOST, NULL,
     "multiprocessors that one launch between GPUs of a node uses at least, as far as its length has work for them; "
     "0: what it needs"},
    {"RONDO_TRAFFIC_CLASS", INT, 1, AT(traffic_class), "-1", -1, 255, NULL,
     "traffic class of packets between nodes, where the transport has one; -1: the network's own"},
    {"RONDO_UCX_TLS", TEXT, 0, AT(ucx_tls), "auto", 0, 63, NULL,
     "UCX's transports between nodes; auto: the fastest that all ranks have (RONDO_UCX_x takes precedence over UCX_x, "
     "except for those of one transport: "
     "UCX_TCP_x)"},
    {"RONDO_OFI_PROVIDER", TEXT, 1, AT(ofi_provider), "auto", 0, 31, NULL,
     "libfabric's provider between nodes, if RONDO_TRANSPORT=ofi; auto: the best that all ranks have"},
    {"RONDO_NET_PLUGIN", TEXT, 0, AT(net_plugin), "", 0, 255, NULL,
     "with RONDO_TRANSPORT=plugin, a net plugin for NCCL, as a file or a name; by default what NCCL_NET_PLUGIN names, "
     "or libnccl-net.so"},
    {"RONDO_COLLNET", INT, 1, AT(collnet), "0", -1, 1, NULL,
     "switches add between nodes, by the CollNet plugin in the library that RONDO_NET_PLUGIN names; -1: where all "
     "ranks have one, 1: creation fails without one, 0: never"},
    {"RONDO_NCCL_HOST", FLAG, 0, AT(nccl_host), "0", 0, 1, NULL, "libnccl.so.2 makes communicators of host memory"},
    {"RONDO_NCCL_STALL_MS", MILLISECONDS, 0, AT(nccl_stall_ms), "60000", 0, INT64_C(1) << 40, NULL,
     "in libnccl.so.2, how long streams stall behind the end of another rank before calls return its error; 0: calls "
     "return it at once"},
    {"RONDO_TOPO_FILE", TEXT, 0, AT(topo_file), "", 0, 255, NULL,
     "a recorded machine in place of this one: a file of lstopo, of rondo-info topo --save, or NCCL's XML; of a "
     "communicator it decides how rings visit the GPUs"},
    {"RONDO_TOPO_DUMP_FILE", TEXT, 0, AT(topo_dump_file), "", 0, 255, NULL,
     "a file that each communicator, as it is made, writes this machine to, as NCCL's XML"},
    {"RONDO_TOPO_DUMP_FILE_RANK", INT, 0, AT(topo_dump_rank), "0", 0, 1 << 30, NULL, "the rank that writes it"},
    {"RONDO_GRAPH_FILE", TEXT, 0, AT(graph_file), "", 0, 255, NULL,
     "NCCL's XML of graphs, whose first ring says how rings visit the GPUs of a node in place of the searched one"},
    {"RONDO_GRAPH_DUMP_FILE", TEXT, 0, AT(graph_dump_file), "", 0, 255, NULL,
     "a file that each CUDA communicator, as it is made, writes the ring of a node to, as NCCL's XML of graphs"},
    {"RONDO_GRAPH_DUMP_FILE_RANK", INT, 0, AT(graph_dump_rank), "0", 0, 1 << 30, NULL, "the rank that writes it"},
};
#define TABLE_SIZE (sizeof table / sizeof table[0])

static int word_find(const char *words, const char *text)
{
    return rd_word_index(words, '|', text, strlen(text));
}

static int int_parse(const tunable_t *t, const char *text, int64_t *value)
{
    char *end;

    errno = 0;
    *value = strtoll(text, &end, 10);
    return errno || end == text || *end || *value < t->least || *value > t->most ? -1 : 0;
}

static int size_parse(const tunable_t *t, const char *text, uint64_t *value)
{
    if (rd_bytes_parse(text, value) != 0)
        return -1;
    if (*value == 0)
        return 0;
    if (*value < (uint64_t)t->least || *value > (uint64_t)t->most)
        return -1;
    return t->kind == COUNT ? -((*value & (*value - 1)) != 0) : -(*value % 64 != 0);
}

static int ports_parse(const char *text, int *ports)
{
    int first, last, n = 0, m = 0;

    if (sscanf(text, "%5d%n-%5d%n", &first, &n, &last, &m) < 2) {
        last = first;
        m = n;
    }
    if (!n || text[m] || first < 0 || last > 65535 || first > last || (first == 0 && last != 0))
        return -1;
    ports[0] = first;
    ports[1] = last;
    return 0;
}

static int text_parse(const tunable_t *t, const char *text, void *field)
{
    if (strlen(text) > (size_t)t->most)
        return -1;
    if (t->bytes)
        strcpy(memset(field, 0, t->bytes), text); /* zeroed, because the whole field is compared */
    return 0;
}

/* Returns true if all words of a list are allowed. */
static bool words_known(const char *words, const char *list)
{
    for (;;) {
        size_t n = strcspn(list, ",");
        if (n == 0 || rd_word_index(words, '|', list, n) < 0)
            return false;
        if (!list[n])
            return true;
        list += n + 1;
    }
}

/* Returns true if every list of the text has words, and every word is a protocol. */
static bool protos_known(const char *text)
{
    rd_word_list_t list;

    for (size_t next = 0; rd_word_list_next(text, &next, &list);) {
        size_t at = 0, length;
        const char *word;
        int words = 0;

        for (; rd_word_next(&list, &at, &word, &length); words++)
            if (rd_proto_find(word, length) < 0)
                return false;
        if (words == 0)
            return false;
    }
    return rd_word_lists_ordered(text);
}

/* Returns 0, or -1 if the value is not allowed; the field is then unchanged. */
static int value_parse(const tunable_t *t, const char *text, void *field)
{
    rd_log_level_t level;
    uint64_t size;
    int64_t number;

    switch (t->kind) {
    case LEVEL:
        if (rd_log_level_parse(text, &level) != 0)
            return -1;
        *(int *)field = (int)level;
        return 0;
    case PROTO:
        text = rd_env_alias_word(t->name, text);
        return protos_known(text) ? text_parse(t, text, field) : -1;
    case WORD:
        return *text && word_find(t->words, text) < 0 ? -1 : text_parse(t, text, field);
    case WORDS:
        return *text && !words_known(t->words, text) ? -1 : text_parse(t, text, field);
    case TEXT:
        return text_parse(t, text, field);
    case PORTS:
        return ports_parse(text, field);
    case FLAG:
    case INT:
        if (int_parse(t, text, &number) != 0)
            return -1;
        *(int *)field = (int)number;
        return 0;
    case MILLISECONDS:
        return int_parse(t, text, &number) != 0 ? -1 : (*(int64_t *)field = number, 0);
    case BYTES:
        return size_parse(t, text, &size) != 0 ? -1 : (*(size_t *)field = (size_t)size, 0);
    case COUNT:
        return size_parse(t, text, &size) != 0 ? -1 : (*(int *)field = (int)size, 0);
    }
    return -1;
}

static const char *range_print(const tunable_t *t, char *text, size_t bytes)
{
    char least[24], most[24];
    size_t n = 0;

    rd_bytes_print((uint64_t)(t->least < 0 ? 0 : t->least), least);
    rd_bytes_print((uint64_t)t->most, most);
    switch (t->kind) {
    case LEVEL:
    case WORD:
        snprintf(text, bytes, "%s", t->words);
        break;
    case WORDS:
        snprintf(text, bytes, "%s, one or several by comma", t->words);
        break;
    case PROTO:
        for (int p = 0; p < RD_NUM_PROTOS && n < bytes; p++)
            n += (size_t)snprintf(text + n, bytes - n, "%s%s", p ? "|" : "", rd_proto_name((rd_proto_t)p));
        break;
    case TEXT:
        snprintf(text, bytes, "text, up to %d characters", (int)t->most);
        break;
    case PORTS:
        snprintf(text, bytes, "0, or first-last of 1 to 65535");
        break;
    case FLAG:
        snprintf(text, bytes, "0 or 1");
        break;
    case INT:
        snprintf(text, bytes, "%lld to %lld", (long long)t->least, (long long)t->most);
        break;
    case MILLISECONDS:
        snprintf(text, bytes, "%lld to %lld milliseconds", (long long)t->least, (long long)t->most);
        break;
    case BYTES:
        snprintf(text, bytes, "0, or %s to %s bytes, a multiple of 64", least, most);
        break;
    case COUNT:
        snprintf(text, bytes, "0, or %s to %s, a power of two", least, most);
        break;
    }
    return text;
}

rondo_result_t rd_env_check(const char *name, const char *value)
{
    char range[RANGE_TEXT];
    rd_env_t scratch;

    for (size_t i = 0; name && i < TABLE_SIZE; i++) {
        const tunable_t *t = &table[i];

        if (strcmp(t->name, rd_env_alias_now(name)) != 0)
            continue;
        if (!value || !*value || value_parse(t, value, (char *)&scratch + t->offset) == 0)
            return RONDO_SUCCESS;
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "%s=%.100s is not allowed: it must be %s (%s)", name, value,
                        range_print(t, range, sizeof range), t->help);
    }
    return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "%.100s is no variable of rondo; rondo-info --env lists them",
                    name ? name : "NULL");
}

const char *rd_env_name(int index)
{
    return index >= 0 && (size_t)index < TABLE_SIZE ? table[index].name : NULL;
}

const char *rd_env_default(const char *name)
{
    for (size_t i = 0; i < TABLE_SIZE; i++)
        if (strcmp(table[i].name, name) == 0)
            return table[i].standard;
    return NULL;
}

/* Returns the name by which the user has set the variable, for an error message. */
static const char *name_said(const tunable_t *t)
{
    const char *value = getenv(t->name), *old = rd_env_alias_old(t->name);

    return (!value || !*value) && old && getenv(old) ? old : t->name;
}

rondo_result_t rd_env_read(rd_env_t *env)
{
    char range[RANGE_TEXT], kept[RD_SETTING_BYTES];
    rd_env_t new;

    memset(&new, 0, sizeof new);
    for (size_t i = 0; i < TABLE_SIZE; i++) {
        const tunable_t *t = &table[i];
        const char *text = rd_setting_text(t->name, kept);
        void *field = (char *)&new + t->offset;

        (void)value_parse(t, t->standard, field);
        if (text && value_parse(t, text, field) != 0)
            return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "%s=%.100s is not allowed: it must be %s (%s)",
                            name_said(t), text, range_print(t, range, sizeof range), t->help);
    }
    rd_log_set_level((rd_log_level_t) new.debug);
    rd_env_unknown_warn();
    *env = new;
    return RONDO_SUCCESS;
}

/* What ranks exchange must fit into a packet (node/agree.c): a flag is a byte there, and so is which word it is. */
static size_t alike_bytes(const tunable_t *t)
{
    return t->kind == FLAG || t->kind == WORD ? 1 : t->bytes;
}

static void alike_put(const tunable_t *t, const void *field, char *value)
{
    if (t->kind == FLAG)
        *value = (char)*(const int *)field;
    else if (t->kind == WORD)
        *value = (char)(word_find(t->words, field) + 1); /* 0: none */
    else
        memcpy(value, field, t->bytes);
}

/* Writes one value after another, but only those on which ranks must agree. */
void rd_env_alike(const rd_env_t *env, rd_env_alike_t *alike)
{
    size_t at = 0;

    memset(alike, 0, sizeof *alike);
    for (size_t i = 0; i < TABLE_SIZE; i++) {
        const tunable_t *t = &table[i];

        if (!t->alike)
            continue;
        if (at + alike_bytes(t) >
            sizeof alike->values) /* the table has outgrown RD_ENV_ALIKE: test/base/env.c finds it */
            return;
        alike_put(t, (const char *)env + t->offset, alike->values + at);
        at += alike_bytes(t);
    }
}

static void value_print(const tunable_t *t, const char *value, char text[RD_ENV_TEXT])
{
    size_t bytes;
    int number;

    if (t->kind == TEXT || t->kind == PROTO) {
        snprintf(text, RD_ENV_TEXT, "'%s'", value);
    } else if (t->kind == WORD) {
        const char *word = t->words;
        for (int i = 1; i < *value; i++)
            word = strchr(word, '|') + 1;
        snprintf(text, RD_ENV_TEXT, "'%.*s'", *value ? (int)strcspn(word, "|") : 0, word);
    } else if (t->kind == FLAG) {
        snprintf(text, RD_ENV_TEXT, "%d", *value);
    } else if (t->kind == BYTES) {
        memcpy(&bytes, value, sizeof bytes);
        rd_bytes_print(bytes, text);
    } else {
        memcpy(&number, value, sizeof number);
        snprintf(text, RD_ENV_TEXT, "%d", number);
    }
}

const char *rd_env_difference(const rd_env_alike_t *a, const rd_env_alike_t *b, char a_text[RD_ENV_TEXT],
                              char b_text[RD_ENV_TEXT])
{
    size_t at = 0;

    for (size_t i = 0; i < TABLE_SIZE; i++) {
        const tunable_t *t = &table[i];

        if (t->alike && at + alike_bytes(t) > sizeof a->values)
            break;
        if (t->alike && memcmp(a->values + at, b->values + at, alike_bytes(t)) != 0) {
            value_print(t, a->values + at, a_text);
            value_print(t, b->values + at, b_text);
            return t->name;
        }
        at += t->alike ? alike_bytes(t) : 0;
    }
    return NULL;
}

void rd_env_print(FILE *file)
{
    fprintf(file, "%-24s %-42s %-8s %s\n", "variable", "allowed", "default", "now");
    for (size_t i = 0; i < TABLE_SIZE; i++) {
        const tunable_t *t = &table[i];
        const char *text = getenv(t->name), *old = rd_env_alias_old(t->name);
        char range[RANGE_TEXT];
        rd_env_t scratch;

        if ((!text || !*text) && old)
            text = getenv(old);
        int bad = text && *text && value_parse(t, text, (char *)&scratch + t->offset) != 0;

        fprintf(file, "%-24s %-42s %-8s %s%s\n", t->name, range_print(t, range, sizeof range),
                *t->standard ? t->standard : "-", text && *text ? text : "-", bad ? " (not allowed)" : "");
        fprintf(file, "    %s%s\n", t->help, t->alike ? " [alike on all ranks]" : "");
    }
}

void rd_cta_policy_set(rd_env_t *env, int policy)
{
    static const char *const words[] = {"default", "efficiency", "zero"};

    snprintf(env->cta_policy, sizeof env->cta_policy, "%s", words[policy]);
}
