/* The part of the proxy path that proxies execute: what kernels have put into slots goes on by the net communicator,
 * whose planner knows every operation between nodes. A turn takes the triggers that have come, advances what is under
 * way, and notifies kernels of what is done. See proxy.h.
 *
 * Proxy channels share nothing but the tasks, and the GDR messages that proxy channel 0 deals out. Nobody else touches
 * a net communicator's buffers while a proxy serves it. A failure of the net communicator fails the communicator, with
 * the same message, and the other way round. */
#include <string.h>

#include "exec/cuda/proxy/proxy.h"

/* ---- triggers */

/* Returns true if the lane's next trigger has come, which needs both halves. */
static bool trigger_come(const rd_proxy_path_lane_t *lane, uint32_t slots, rd_ktrigger_t *trigger)
{
    const rd_ktrigger_t *at = &lane->pinned->trigger[lane->taken & (slots - 1)];
    uint32_t number = (lane->taken + 1) | RD_KVALID;
    uint64_t half[2];

    for (int i = 0; i < 2; i++)
        half[i] = __atomic_load_n((const uint64_t *)(const void *)at + i, __ATOMIC_ACQUIRE);
    memcpy(trigger, half, sizeof *trigger);
    return trigger->number == number && trigger->again == number;
}

static size_t part_of(size_t count, size_t each, uint32_t round)
{
    size_t from = each * round;

    return count <= from ? 0 : count - from < each ? count - from : each;
}

static const size_t *round_counts(size_t *into, const size_t *counts, int n, const rd_proxy_path_task_t *t,
                                  uint32_t round)
{
    for (int r = 0; r < n; r++)
        into[r] = part_of(counts[r], t->each, round);
    return into;
}

/* Gets the plan of one round: the task's operation on a part of each block. */
static rondo_result_t round_plan(rd_proxy_channel_t *channel, const rd_proxy_path_task_t *t, uint32_t round,
                                 rd_plan_t **plan)
{
    rd_planner_t *planner = channel->net_comms[t->net_comm]->planner;
    int n = channel->path->net_comms[t->net_comm].nranks;
    size_t *in = channel->counts, *out = channel->counts + n;
    rd_coll_desc_t desc = t->desc;
    rd_tables_t tables = {NULL, NULL, NULL, NULL};

    if (t->in_counts)
        tables.in_counts = round_counts(in, t->in_counts, n, t, round);
    if (t->out_counts)
        tables.out_counts = round_counts(out, t->out_counts, n, t, round);
    if (!t->in_counts && !t->out_counts) {
        desc.count = desc.coll == RD_BARRIER ? desc.count : part_of(desc.count, t->each, round);
        return rd_plan_get(planner, &desc, NULL, NULL, plan);
    }
    desc.count = 0;
    for (int r = 0; r < n && desc.coll != RD_ALLTOALL; r++)
        desc.count += t->in_counts ? in[r] : out[r];
    return rd_plan_get(planner, &desc, &tables, NULL, plan);
}

/* ---- from a trigger to a task of the net communicator's queue */

static rondo_result_t add(rd_proxy_channel_t *channel, rd_proxy_path_lane_t *lane, rd_queue_t *net_comm, int chain,
                          rd_plan_t *plan, const void *in, void *out)
{
    rd_completion_t *completion = &lane->flying[lane->taken & (channel->path->k.slots - 1)];
    rd_task_t *task;
    rondo_result_t result = rd_task_create(net_comm, plan, chain, in, out, &task);

    if (result == RONDO_SUCCESS)
        result = rd_queue_submit(net_comm, task, completion);
    lane->taken += result == RONDO_SUCCESS;
    return result;
}

/* Wakes the other proxy channels, which may nap, so that they poll again. */
static void wake_others(const rd_proxy_channel_t *channel)
{
    const rd_proxy_path_t *s = channel->path;

    for (int c = 0; c < s->nchannels; c++)
        if (c != channel->number)
            rd_proxy_nudge(&s->channels[c].client);
}

/* Adds the round that the trigger asks for. */
static rondo_result_t add_round(rd_proxy_channel_t *channel, rd_proxy_path_task_t *t, uint32_t round)
{
    const rd_proxy_path_t *s = channel->path;
    rd_proxy_path_lane_t *lane = &channel->lanes[0];
    uint32_t at = lane->taken & (s->k.slots - 1);
    char *slot = channel->slots + (size_t)at * 2 * s->k.slot, *out = slot + s->k.slot, *in = slot;
    rd_queue_t *net_comm = channel->net_comms[t->net_comm];
    rd_plan_t *plan;

    lane->inlined[at] = t->inlined ? t->inline_out : 0;
    if (t->compares) {
        rondo_result_t result = rd_signature_compare(net_comm, &t->signature, &channel->compared, &lane->flying[at]);
        lane->taken += result == RONDO_SUCCESS;
        return result;
    }
    /* In place: the root's kernel gets nothing back, the other kernels give nothing. */
    if (t->desc.coll == RD_BROADCAST)
        in = out = s->net_comms[t->net_comm].rank == t->desc.root ? in : out;
    rondo_result_t result = round_plan(channel, t, round, &plan);
    return result == RONDO_SUCCESS ? add(channel, lane, net_comm, RD_CHAIN_COLLECTIVE, plan, in, out) : result;
}

/* `t`: the task that the trigger names; NULL: there is no such task. */
static rondo_result_t begin_round(rd_proxy_channel_t *channel, const rd_ktrigger_t *trigger, rd_proxy_path_task_t *t)
{
    rd_proxy_path_t *s = channel->path;

    if (!t || trigger->round >= t->rounds)
        return rd_error(s->cuda->team->ctx, RONDO_ERR_INTERNAL, "a kernel asks for round %u of task %u, which is none",
                        trigger->round, trigger->what);
    /* Nobody has announced the triggers of a graph's kernels. */
    if (t->captured && t->rounds > 1 && trigger->round == 0)
        wake_others(channel);
    rondo_result_t result = add_round(channel, t, trigger->round);
    if (t->captured)
        return result;
    channel->answered++;
    if (atomic_fetch_sub(&t->left, 1) == 1)
        rd_proxy_path_task_release(s->tasks, t);
    return result;
}

/* Any launch may use lane l for any pair; all messages of that pair before are over then. */
static rondo_result_t begin_message(rd_proxy_channel_t *channel, int l, const rd_ktrigger_t *trigger)
{
    const rd_proxy_path_t *s = channel->path;
    rd_proxy_path_lane_t *lane = &channel->lanes[l];
    size_t at = ((size_t)(l - 1) * s->k.slots + (lane->taken & (s->k.slots - 1))) * s->k.message_slot;
    int peer = (int)RD_KMESSAGE_PEER(trigger->round), send = (int)RD_KMESSAGE_SEND(trigger->round);
    int chain = send ? RD_CHAIN_SEND(peer) : RD_CHAIN_RECV(peer);
    rd_queue_t *net_comm = channel->net_comms[RD_NET_COMM_ALL];
    int captured = (trigger->round & RD_KMESSAGE_CAPTURED) != 0;
    rondo_result_t result;
    rd_plan_t *plan;

    channel->answered += !captured;
    lane->receives = !send;
    if (trigger->round & RD_KMESSAGE_EACH)
        return rd_gdr_deal(channel, lane, trigger, channel->slots + at);
    if (peer >= s->cuda->k.nranks || peer == s->cuda->k.rank)
        return rd_error(s->cuda->team->ctx, RONDO_ERR_INTERNAL, "a kernel asks for a message of rank %d", peer);
    if (trigger->round & RD_KMESSAGE_GDR)
        return rd_gdr_deal(channel, lane, trigger, channel->slots + at);
    if (trigger->what > s->k.message_slot)
        return rd_error(s->cuda->team->ctx, RONDO_ERR_INTERNAL,
                        "a kernel asks for a message of %u bytes, longer than %u", trigger->what, s->k.message_slot);
    if (captured && channel->number == 0 && trigger->round & RD_KMESSAGE_LONG)
        wake_others(channel);
    result = rd_plan_get_p2p(net_comm->planner, peer, send, trigger->what, &plan);
    return result == RONDO_SUCCESS ? add(channel, lane, net_comm, chain, plan, channel->slots + at, channel->slots + at)
                                   : result;
}

/* ---- a turn's beginning and end */

/* Returns true if the round may begin. Inline input arrives on its own, perhaps later than the trigger. */
static bool may_begin(rd_proxy_channel_t *channel, const rd_proxy_path_task_t *t)
{
    const rd_proxy_path_t *s = channel->path;
    uint32_t taken = channel->lanes[0].taken;
    char *slot = channel->slots + (size_t)(taken & (s->k.slots - 1)) * 2 * s->k.slot;

    return !t || !t->inlined || rd_inline_come(channel, taken + 1, slot, t->inline_in);
}

static rondo_result_t take(rd_proxy_channel_t *channel, int *moved)
{
    const rd_proxy_path_t *s = channel->path;
    rondo_result_t result = RONDO_SUCCESS;
    rd_ktrigger_t trigger;

    for (int l = 0; l < s->nlanes; l++) {
        rd_proxy_path_lane_t *lane = &channel->lanes[l];
        while (result == RONDO_SUCCESS && lane->taken - lane->done < s->k.slots &&
               trigger_come(lane, s->k.slots, &trigger)) {
            rd_proxy_path_task_t *t = l == RD_CHAIN_COLLECTIVE ? rd_proxy_path_task(s->tasks, trigger.what) : NULL;
            if (l == RD_CHAIN_COLLECTIVE && !may_begin(channel, t))
                break;
            *moved = 1;
            result = l == RD_CHAIN_COLLECTIVE ? begin_round(channel, &trigger, t) : begin_message(channel, l, &trigger);
        }
    }
    return result;
}

/* Notifies the kernels, in order, of what is done. Returns true if something is still under way. */
static bool notify(rd_proxy_channel_t *channel, int *moved)
{
    const rd_proxy_path_t *s = channel->path;
    bool flying = false;

    for (int l = 0; l < s->nlanes; l++) {
        rd_proxy_path_lane_t *lane = &channel->lanes[l];
        uint32_t done = lane->done;
        while (done != lane->taken && atomic_load(&lane->flying[done & (s->k.slots - 1)].pending) == 0) {
            uint32_t at = done & (s->k.slots - 1);
            if (lane->inlined[at])
                rd_inline_give(channel, done + 1, channel->slots + ((size_t)2 * at + 1) * s->k.slot, lane->inlined[at]);
            done++;
        }
        if (done != lane->done) {
            if (s->flushes && lane->receives)
                rd_gdr_flush();
            lane->done = done;
            __atomic_store_n(&lane->pinned->done, done, __ATOMIC_RELEASE);
            *moved = 1;
        }
        flying |= done != lane->taken;
    }
    return flying;
}

/* ---- failure */

/* Returns the communicator's rank that is rank `r` of a net communicator, or -1 if no particular rank is meant. */
static int outside(const rd_proxy_path_t *s, int net_comm, int r)
{
    const rd_node_t *node = s->cuda->team->node;
    int local_rank = 0;

    if (net_comm != RD_NET_COMM_RAIL || r < 0)
        return r;
    for (int i = 0; i < s->cuda->team->nranks; i++) {
        if (node->node_of[i] == r && local_rank++ == node->self)
            return i;
    }
    return -1;
}

/* The other way round; returns -1 if the rank is not in the rail. */
static int inside(const rd_proxy_path_t *s, int net_comm, int r)
{
    int i = net_comm != RD_NET_COMM_RAIL ? r : s->net_comms[net_comm].nranks - 1;

    while (net_comm == RD_NET_COMM_RAIL && i >= 0 && outside(s, net_comm, i) != r)
        i--;
    return i;
}

/* The ranks of the net communicator cannot blame a rank that is not among them: they learn of it as this one has. */
void rd_proxy_progress_failure(rd_proxy_channel_t *channel, int net_comm)
{
    const rd_team_t *team = channel->path->cuda->team;
    rd_queue_t *to = channel->net_comms[net_comm];
    rd_failure_t failure = {.failed_rank = -1};
    rondo_result_t code = rd_stop_read(&team->health->stop, &failure);
    int failed_rank = failure.failed_rank, its = inside(channel->path, net_comm, failed_rank);

    if (!to || code == RONDO_SUCCESS || rd_health_check(to->health) != RONDO_SUCCESS)
        return;
    if (failed_rank >= 0 && its < 0)
        code = RONDO_ERR_MISMATCH; /* which is not passed on to other ranks */
    rd_health_follow(to->health, code, its, &team->health->stop, "");
}

/* Fails the communicator as a net communicator has failed. */
static void come_up(rd_proxy_channel_t *channel, int net_comm)
{
    const rd_team_t *team = channel->path->cuda->team;
    rd_queue_t *from = channel->net_comms[net_comm];
    int failed_rank = outside(channel->path, net_comm, atomic_load(&from->health->stop.failed_rank));

    if (net_comm != RD_NET_COMM_RAIL)
        rd_health_follow(team->health, rd_health_check(from->health), failed_rank, &from->health->stop, "");
    else
        rd_health_fail(team->health, rd_health_check(from->health), failed_rank,
                       "rank %d (%s) is lost, according to its rail, whose message numbers nodes and not ranks: %s",
                       failed_rank, rd_boot_whois(team->boot, failed_rank), from->health->stop.text);
}

/* The last proxy channel notifies the kernels, whose triggers may have named buffers to all channels. Channels that
 * sleep are woken by proxy channel 0, which does not sleep while a kernel waits for it, so that they see the failure.
 */
static void let_go(rd_proxy_channel_t *channel)
{
    rd_proxy_path_t *s = channel->path;

    channel->over = true;
    if (atomic_fetch_add(&s->over, 1) + 1 == s->nchannels)
        __atomic_store_n(&s->channels[0].lanes[0].pinned->over, 1, __ATOMIC_RELEASE);
    for (int c = 1; channel->number == 0 && c < s->nchannels; c++)
        rd_proxy_wake(&s->channels[c].client);
}

#define NEWS_MS 300 /* in which the communicator itself may learn more than the rail */

static rd_proxy_state_t end(rd_proxy_channel_t *channel, rondo_result_t result)
{
    const rd_team_t *team = channel->path->cuda->team;
    int failed = 0;

    while (failed < RD_NET_COMMS &&
           !(channel->net_comms[failed] && rd_health_check(channel->net_comms[failed]->health)))
        failed++;
    if (failed == RD_NET_COMM_RAIL && rd_health_poll(team->health) == RONDO_SUCCESS) {
        channel->failed_ms = channel->failed_ms ? channel->failed_ms : rd_clock_ms();
        if (rd_clock_ms() - channel->failed_ms < NEWS_MS)
            return RD_PROXY_WAITS;
    }
    if (failed < RD_NET_COMMS)
        come_up(channel, failed);
    else
        rd_health_fail(team->health, result, team->rank, "an operation could not go on: %s", rd_thread_error());
    for (int i = 0; i < RD_NET_COMMS; i++) {
        rd_proxy_progress_failure(channel, i);
        if (channel->net_comms[i])
            rd_queue_flush(channel->net_comms[i], rd_health_check(channel->net_comms[i]->health));
    }
    let_go(channel);
    return RD_PROXY_IDLE;
}

/* A net communicator's turn; sets *busy if it has something under way. */
static rondo_result_t advance(rd_proxy_channel_t *channel, rd_queue_t *net_comm, int *busy, int *moved)
{
    rondo_result_t result = RONDO_SUCCESS;
    int its = 0, by_gdr = net_comm && rd_transport_gdr_peer(net_comm->net) >= 0;

    if (!net_comm || (!net_comm->active && !by_gdr && rd_transport_idle(net_comm->net)))
        return RONDO_SUCCESS;
    *busy = 1;
    result = rd_queue_tasks(net_comm, &its);
    if (result == RONDO_SUCCESS) { /* kernels are notified before the network is polled, which takes a microsecond */
        (void)notify(channel, &its);
        int came = rd_transport_progress(net_comm->net);
        if (came && net_comm->active && (result = rd_queue_tasks(net_comm, &its)) == RONDO_SUCCESS)
            (void)notify(channel, &its); /* what has come may complete a task */
        its |= came;
    }
    *moved |= its;
    if (!net_comm->active && !by_gdr) /* only the network has something left to send: no rank is waited for */
        return result;
    if (its)
        rd_wait_progress(&net_comm->wait);
    else if (result == RONDO_SUCCESS)
        result = rd_queue_backoff(net_comm);
    return result;
}

rd_proxy_state_t rd_proxy_progress(void *arg)
{
    rd_proxy_channel_t *channel = arg;
    const rd_proxy_path_t *s = channel->path;
    rondo_result_t result = rd_health_check(s->cuda->team->health);
    int moved = 0, busy = 0;

    if (channel->over)
        return RD_PROXY_IDLE;
    if (s->gdr_min)
        rd_gdr_turn(s);
    if (result == RONDO_SUCCESS && !channel->failed_ms)
        result = take(channel, &moved);
    if (result == RONDO_SUCCESS && !channel->failed_ms && channel->dealt)
        result = rd_gdr_begin(channel, &moved);
    for (int i = 0; i < RD_NET_COMMS && result == RONDO_SUCCESS && !channel->failed_ms; i++)
        result = advance(channel, channel->net_comms[i], &busy, &moved);
    if (result != RONDO_SUCCESS || channel->failed_ms) /* what has failed is off the queue, and not done */
        return end(channel, result);
    bool flying = notify(channel, &moved);
    if (channel->number == 0)
        rd_proxy_path_tasks_sweep(channel->path);
    if (!flying)
        atomic_store(&channel->settled, channel->answered);
    if (moved)
        return RD_PROXY_MOVED;
    if (busy || flying)
        return RD_PROXY_WAITS;
    return atomic_load(&channel->announced) != channel->answered || atomic_load(&s->tasks->captured) ? RD_PROXY_DOZES
                                                                                                     : RD_PROXY_IDLE;
}
