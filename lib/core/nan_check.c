/* See nan_check.h. */
#include "core/nan_check.h"

#include <stdio.h>
#include <string.h>

#include "base/types.h"
#include "core/caller.h"
#include "core/comm.h"
#include "core/extents.h"
#include "exec/host/nan_scan.h"
#include "monitor/called.h"
#include "monitor/view.h"

/* What was found in a call's input. */
typedef struct {
    size_t count, first; /* the first one's index in the buffer */
    size_t looked_at;
} found_t;

rd_nan_mode_t rd_nan_mode(const rd_env_t *env)
{
    return strcmp(env->nan_check, "fail") == 0   ? RD_NAN_FAILS
           : strcmp(env->nan_check, "warn") == 0 ? RD_NAN_WARNS
                                                 : RD_NAN_IGNORED;
}

/* Looks at `count` elements from element `at` of the buffer on. */
static void look(void *arg, const void *buffer, size_t at, size_t count, rondo_type_t type)
{
    found_t *found = arg;
    const char *from = (const char *)buffer + at * rondo_type_size(type);
    size_t first, n = count ? rd_nan_count(from, count, type, &first) : 0;

    if (n && !found->count)
        found->first = at + first;
    found->count += n;
    found->looked_at += count;
}

/* A call of the same kind was warned of; from now on it is. */
static bool was_said(rd_nan_check_t *check, uint64_t hash)
{
    for (int i = 0; i < RD_NAN_SAID; i++)
        if (check->said[i] == hash)
            return true;
    check->said[check->nsaid++ % RD_NAN_SAID] = hash;
    return false;
}

/* `what`: the call, as "allreduce". `with`: its arguments. */
static rondo_result_t judge(rondo_comm_t comm, rd_nan_check_t *check, const found_t *found, const char *what,
                            const char *with, rd_track_t track, uint64_t hash)
{
    const uint64_t begun = atomic_load_explicit(&comm->seat.board->calls[track].begun, memory_order_relaxed);
    char number[64], text[RD_ERROR_BYTES - 100];

    if (!found->count || (check->mode == RD_NAN_WARNS && was_said(check, hash | 1)))
        return RONDO_SUCCESS;
    if (rd_caller()->depth) /* it has no number yet */
        snprintf(number, sizeof number, "in a group");
    else
        snprintf(number, sizeof number, "%s number %llu", track == RD_TRACK_COLLECTIVE ? "collective" : "message",
                 (unsigned long long)begun + 1);
    snprintf(
        text, sizeof text,
        "rank %d (%s) has %zu elements that are not a number in the input of its %s, %s (%s): the first is element "
        "%zu of %zu",
        comm->team.rank, rd_health_whois(&comm->health, comm->team.rank), found->count, what, number, with,
        found->first, found->looked_at);
    if (check->mode == RD_NAN_FAILS)
        return rd_health_fail(&comm->health, RONDO_ERR_NAN, comm->team.rank, "%s (RONDO_NAN_CHECK=fail)", text);
    rd_log(&comm->ctx, RD_LOG_WARN, "%s (RONDO_NAN_CHECK=warn says so once for each kind of call)", text);
    return RONDO_SUCCESS;
}

rondo_result_t rd_nan_collective(rondo_comm_t comm, rd_nan_check_t *check, const rd_call_t *call)
{
    const rd_coll_desc_t *d = &call->desc;
    const char *name = call->name ? call->name : rd_coll_name(d->coll), *op = "";
    int root = call->name ? call->root : d->root;
    found_t found = {0};
    char with[160], at[24] = "";
    bool tables;

    if (check->mode == RD_NAN_IGNORED || comm->cuda)
        return RONDO_SUCCESS;
    rd_extents_read(comm, call, look, &found);
    if (!found.count)
        return RONDO_SUCCESS;
    if (rd_coll_reduces(d->coll))
        op = d->op < RONDO_NUM_OPS ? rd_op_name(d->op) : "an operator of the user's";
    if (rd_view_kind_rooted(rd_coll_named(name, &tables)))
        snprintf(at, sizeof at, ", root %d", root);
    snprintf(with, sizeof with, "%s%s%s%s", rd_type_name(d->type), *op ? ", " : "", op, at);
    uint64_t hash = rd_sign_mix(rd_sign_mix((uint64_t)d->coll << 32 | (uint64_t)d->type, d->count),
                                (uint64_t)root << 32 | (uint32_t)d->op);
    for (const char *c = name; *c; c++)
        hash = rd_sign_mix(hash, (unsigned char)*c);
    return judge(comm, check, &found, name, with, RD_TRACK_COLLECTIVE, hash);
}

rondo_result_t rd_nan_message(rondo_comm_t comm, rd_nan_check_t *check, const rd_message_t *m)
{
    found_t found = {0};
    char with[64];

    if (check->mode == RD_NAN_IGNORED || comm->cuda || !m->send)
        return RONDO_SUCCESS;
    look(&found, m->buffer, 0, m->bytes / rondo_type_size(m->type), m->type);
    snprintf(with, sizeof with, "%s, to rank %d", rd_type_name(m->type), m->peer);
    return judge(comm, check, &found, "send", with, RD_TRACK_SEND,
                 rd_sign_mix(rd_sign_mix((uint64_t)m->type, m->bytes), (uint64_t)m->peer << 1));
}
