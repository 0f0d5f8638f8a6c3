/* Mapping a node's memory: the leader sizes it, every member reserves and maps its part, and after each of the two
 * steps all ranks of the communicator learn how it went, so that they succeed or fail together. */
#include "node/node.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/page.h"
#include "boot/sock.h"
#include "node/node_mem.h"

typedef struct report {
    int32_t code, zero;
    uint64_t pointer; /* address of a leader's plain memory */
    char text[RD_MEM_TEXT];
} report_t;

static bool is_plain(const rd_node_t *node)
{
    return node->nlocal > 1 && node->fd < 0;
}

/* Where memory is what lacks, all ranks say what needs less of it. */
static rondo_result_t report(const report_t *of, const char *who, const char *less, rd_log_ctx_t *ctx)
{
    bool lacks = of->code == RONDO_ERR_NO_MEMORY;

    less = less ? less : "a smaller RONDO_SLOT_BYTES or RONDO_SLOTS";
    return rd_error(ctx, (rondo_result_t)of->code, "%s%s%s%s%s", who, of->text, lacks ? "; " : "", lacks ? less : "",
                    lacks ? " needs less" : "");
}

/* Exchanges all reports. The failure of the lowest rank that failed becomes that of all ranks. */
static rondo_result_t exchange(report_t *all, const char *less, rd_boot_t *boot, int rank, int nranks,
                               rd_log_ctx_t *ctx)
{
    char who[160];

    rondo_result_t code = rd_boot_allgather(boot, all, sizeof(*all));
    for (int r = 0; r < nranks && !code; r++) {
        all[r].text[RD_MEM_TEXT - 1] = 0;
        snprintf(who, sizeof who, "rank %d (%.128s): ", r, rd_boot_whois(boot, r));
        if (all[r].code)
            code = report(&all[r], r == rank ? "" : who, less, ctx);
    }
    return code;
}

/* Returns how much of its segment a rank of the node touches, in whole pages; a page is the least. */
static size_t used_by(const rd_node_t *node, int member, size_t segment, const size_t *used)
{
    size_t bytes = used ? used[node->local[member]] : segment;

    return bytes ? rd_round_up(bytes, RD_PAGE) : RD_PAGE;
}

static void lead(rd_node_t *node, size_t segment, const size_t *used, const rd_env_t *env, report_t *mine)
{
    size_t total = segment * (size_t)node->nlocal, touched = 0;
    rd_mem_room_t room;
    char *base = NULL;
    for (int m = 0; m < node->nlocal; m++)
        touched += used_by(node, m, segment, used);
    rd_mem_room(&room, "");
    mine->code = rd_mem_check(&room, touched, total, node->fd >= 0, mine->text);
    if (mine->code)
        return;
    if (is_plain(node))
        mine->code = rd_mem_plain(total, env->huge_pages, &base, mine->text);
    else
        mine->code = rd_mem_size(node->fd, total, mine->text);
    mine->pointer = (uint64_t)(uintptr_t)base;
    node->base = base;
}

static void follow(rd_node_t *node, size_t segment, const size_t *used, const rd_env_t *env, const report_t *leader,
                   report_t *mine)
{
    size_t total = segment * (size_t)node->nlocal, own = used_by(node, node->self, segment, used);
    rd_mem_room_t room;
    mine->code = RONDO_SUCCESS;
    if (is_plain(node)) {
        char *base = (char *)(uintptr_t)leader->pointer;
        if (node->self == 0)
            return; /* the leader's own memory */
        if (rd_mem_plain_join(base, total) == 0) {
            node->base = base;
            return;
        }
        mine->code = RONDO_ERR_INTERNAL;
        snprintf(mine->text, sizeof(mine->text), "the leader's memory is not in this process");
        return;
    }
    rd_mem_room(&room, "");
    mine->code = rd_mem_check(&room, own, total, 0, mine->text); /* this rank may be in a narrower cgroup */
    const rd_mem_file_t file = {.fd = node->fd,
                                .bytes = total,
                                .own = segment * (size_t)node->self,
                                .own_bytes = own,
                                .huge = env->huge_pages,
                                .ample = rd_mem_ample(&room, total)};
    if (!mine->code)
        mine->code = rd_mem_map(&file, &node->base, mine->text);
}

static void unmap(rd_node_t *node, size_t total)
{
    if (node->base && is_plain(node))
        rd_mem_plain_leave(node->base);
    else if (node->base)
        munmap(node->base, total);
    node->base = NULL;
}

rondo_result_t rd_node_map_used(rd_node_t *node, rd_boot_t *boot, size_t segment_bytes, const size_t *used,
                                const char *less, const rd_env_t *env, rd_log_ctx_t *ctx, rd_stop_t *stop)
{
    size_t total = segment_bytes * (size_t)node->nlocal, most = segment_bytes * (size_t)node->most;
    int rank = node->local[node->self], nranks = rd_boot_nranks(boot);
    /* By the fullest node, so that all ranks refuse the same. */
    if (segment_bytes % 4096 || most / (size_t)node->most != segment_bytes || most > (size_t)1 << 46)
        return rd_error(ctx, RONDO_ERR_INVALID_ARGUMENT, "segments of %zu bytes for %d ranks cannot be mapped",
                        segment_bytes, node->most);
    report_t *all = calloc((size_t)nranks, sizeof(*all));
    if (!all)
        return rd_boot_drop_out(boot, rd_error(ctx, RONDO_ERR_NO_MEMORY, "no memory to compare %d ranks", nranks));
    if (node->nlocal > 1 && node->self == 0)
        lead(node, segment_bytes, used, env, &all[rank]);
    rondo_result_t code = exchange(all, less, boot, rank, nranks, ctx);
    if (!code && node->nlocal > 1)
        follow(node, segment_bytes, used, env, &all[node->local[0]], &all[rank]);
    if (!code)
        code = exchange(all, less, boot, rank, nranks, ctx);
    if (!code)
        code = rd_stop_get(stop);
    if (!code)
        node->segment_bytes = segment_bytes;
    else
        unmap(node, total);
    free(all);
    return code;
}

rondo_result_t rd_node_map(rd_node_t *node, rd_boot_t *boot, size_t segment_bytes, const char *less,
                           const rd_env_t *env, rd_log_ctx_t *ctx, rd_stop_t *stop)
{
    return rd_node_map_used(node, boot, segment_bytes, NULL, less, env, ctx, stop);
}

void rd_node_close_pidfds(rd_node_t *node)
{
    for (int m = 0; node->pidfd && m < node->nlocal; m++) {
        rd_fd_close(node->pidfd[m]);
        node->pidfd[m] = -1;
    }
}

void rd_node_free(rd_node_t *node)
{
    if (!node->node_of && !node->local) /* zeroed and never found: its fd 0 belongs to others */
        node->fd = -1;
    unmap(node, node->segment_bytes * (size_t)node->nlocal);
    rd_node_close_pidfds(node);
    for (int m = 0; node->brought && m < node->nlocal; m++)
        rd_fd_close(node->brought[m]);
    rd_fd_close(node->fd);
    free(node->node_of);
    free(node->local);
    free(node->pidfd);
    free(node->brought);
    free(node->order);
    free(node->at);
    memset(node, 0, sizeof(*node));
    node->fd = -1;
}
