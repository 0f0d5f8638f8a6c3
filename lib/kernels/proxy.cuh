/* The proxy path between nodes: kernels copy the data that they send into slots in pinned memory, for the process's
 * proxy, and copy the data that it has received out of them. See work.h for lanes, slots and triggers.
 *
 *   collective   a team of blocks for each proxy channel: for each of its rounds in -> slot, trigger ... done, slot ->
 *                out. As many rounds are under way as there are slots, so that copies to and from the host overlap the
 *                transfers over the network
 *   inline       one block sends and receives short data, by lines that need no order: see inline.cuh
 *   messages     a block for each pair (a peer and a direction) and proxy channel, which depends on no other block. By
 *                GDR the network reads and writes the buffers: the kernel passes on where the messages lie, several at
 *                once, and waits
 *
 * The kernel of a collective without output on this rank ends when its input is in slots; the next launch checks that
 * they are free again. A kernel of messages waits, because slots of messages and of collectives share memory.
 *
 * Order: each block releases the data that it has put into a slot, and thread 0 of the team's last block raises the
 * trigger. A slot is written anew only when `done` has passed it, and when the whole team has copied its output out;
 * each block has done so before it arrives with the next input. Reads of slots bypass the first-level cache, which
 * would keep the slot's former data. */
#ifndef RD_KERNELS_PROXY_CUH
#define RD_KERNELS_PROXY_CUH

#include "kernels/inline.cuh"
#include "kernels/arith_any.cuh"
#include "kernels/arith_wide.cuh"
#include "kernels/wait.cuh"

/* ---- triggers and done */

struct rd_lane_ring_t {
    const rd_kproxy_t &proxy;
    rd_klane_t *lane;
    rd_klane_state_t *state;
    uint32_t first, blocks; /* triggers raised before this launch; blocks of the team */
    uint32_t before;        /* triggers that earlier launches have seen done */
    uint32_t seen;          /* triggers that thread 0 has seen done */
    rd_wait_t wait;

    RD_MEMBER rd_lane_ring_t(const rd_kcomm_t &comm, const rd_kproxy_t &s, uint32_t number, uint32_t nblocks) : proxy(s)
    {
        lane = s.lanes + number;
        state = s.state + number;
        blocks = nblocks;
        first = word_load(&state->raised);
        before = seen = word_load(&state->seen);
        wait.begin(comm, RD_KPROXY);
        wait.dead = block_any(word_load(&s.state->failed) != 0);
    }

    RD_MEMBER uint32_t slot(uint32_t i) const
    {
        return (first + i) & (proxy.slots - 1);
    }

    /* Returns the number of trigger i as triggers and inline lines bear it. */
    RD_MEMBER uint32_t number(uint32_t i) const
    {
        return (first + i + 1) | RD_KVALID;
    }

    /* All threads call it when this block has done its part of slot(i). `gives` is false if the block puts nothing
     * there. Then it has nothing to release, unless this launch has used the slot before and may still be reading the
     * output in it. */
    RD_MEMBER void raise(uint32_t i, bool gives, uint32_t what, uint32_t round)
    {
        const uint32_t at = slot(i);

        if (gives || i >= proxy.slots) {
            warp_sync();
            (void)group_release(0, gpu_threads(), false, gpu_thread() == 0);
        }
        if (gpu_thread() != 0 || wait.dead)
            return;
        if (blocks > 1) {
            if (!last_to_arrive(&state->arrived[at], blocks))
                return;
            fence_sys();
        }
        line_store(&lane->trigger[at], make_uint4(what, number(i), round, number(i)));
    }

    /* All threads wait until the proxy has done trigger i; a negative i is one of an earlier launch. Returns false if
     * the kernel has to leave. */
    RD_MEMBER bool await(int32_t i)
    {
        if (gpu_thread() == 0) {
            while ((int32_t)(seen - (first + (uint32_t)i + 1)) < 0 && wait.more())
                seen = word_load(&lane->done);
            wait.polls = wait.since = 0;
            fence_sys();
        }
        wait.dead = block_any(wait.dead);
        return !wait.dead;
    }

    /* All threads wait until slot(i) holds no data of earlier launches any more. Returns false if the kernel has to
     * leave, or if an earlier one has left without having finished. */
    RD_MEMBER bool vacant(uint32_t i)
    {
        const int32_t earlier = (int32_t)(i - proxy.slots);

        return !wait.dead &&
               (earlier >= 0 || (int32_t)(before - (first + (uint32_t)earlier + 1)) >= 0 || await(earlier));
    }

    /* The same for all slots of the lane. */
    RD_MEMBER bool all_vacant()
    {
        return !wait.dead && (before == first || await(-1));
    }

    /* All threads call it at the end, after n triggers were raised. */
    RD_MEMBER void keep(uint32_t n)
    {
        if (gpu_thread() != 0)
            return;
        if (wait.dead) {
            word_store(&proxy.state->failed, 1);
        } else if (last_to_arrive(&state->leaving, blocks)) {
            word_store(&state->raised, first + n);
            word_store(&state->seen, seen);
        }
    }
};

/* ---- lines of a slot that are made of parts */

/* Finds the part that byte `p` of a slot belongs to. Calls go through the parts in order. */
struct rd_side_at_t {
    const rd_kside_t &side;
    const rd_kpart_t *table;
    char *base;
    uint64_t from, each; /* this round has bytes from..from + each - 1 of every part */
    uint32_t i;
    uint64_t start, length; /* where part i begins in the slot, and its bytes there */
    uint64_t end;           /* the end of the last part */

    RD_MEMBER rd_side_at_t(const rd_kside_t &s, const rd_kpart_t *rows, const void *buffer, uint64_t e, uint32_t round)
        : side(s)
    {
        table = rows + s.tabled - (s.tabled != 0);
        base = (char *)const_cast<void *>(buffer);
        from = e * round;
        each = e;
        i = 0;
        start = 0;
        length = s.n ? part_length(0) : 0;
        end = total();
    }

    RD_MEMBER uint64_t part_length(uint32_t k) const
    {
        const uint64_t bytes = side.tabled ? table[k].bytes : side.part.bytes;

        return bytes <= from ? 0 : bytes - from < each ? bytes - from : each;
    }

    RD_MEMBER uint64_t total() const
    {
        uint64_t sum = 0;

        if (!side.tabled)
            return side.n ? side.n * part_length(0) : 0;
        for (uint32_t k = 0; k < side.n; k++)
            sum += part_length(k);
        return sum;
    }

    /* Moves on to the part that holds p, which is less than the total. */
    RD_MEMBER void seek(uint64_t p)
    {
        if (!side.tabled && p >= start + length) {
            i = (uint32_t)(p / length);
            start = i * length;
        }
        while (p >= start + length) {
            start += length;
            length = part_length(++i);
        }
    }

    /* Returns where this round's bytes of the part begin in the buffer. */
    RD_MEMBER uint64_t offset() const
    {
        return (side.tabled ? table[i].offset : side.part.offset + i * side.stride) + from;
    }

    RD_MEMBER rd_part_t part() const
    {
        return rd_part(base, offset(), offset() + length);
    }
};

/* Returns the table of parts that rd_side_at_t walks through if the parts are not alike. */
RD_DEVICE const rd_kpart_t *rd_proxy_table(const rd_kcomm_t &comm, const rd_kproxied_t &s)
{
    return s.listed ? (const rd_kpart_t *)comm.own : s.here;
}

/* Load and store a line that several parts share, byte by byte. */
RD_DEVICE_FAR uint4 rd_line_gather(rd_side_at_t *at, uint64_t p, uint64_t end)
{
    uint32_t w[4] = {0, 0, 0, 0};

    for (uint32_t b = 0; b < 16 && p + b < end; b++) {
        at->seek(p + b);
        const rd_part_t part = at->part();
        w[b / 4] |= (uint32_t) * (const uint8_t *)(part.base + (p + b - at->start)) << b % 4 * 8;
    }
    return make_uint4(w[0], w[1], w[2], w[3]);
}

RD_DEVICE_FAR void rd_line_scatter(rd_side_at_t *at, uint64_t p, uint64_t end, uint4 v)
{
    const uint32_t w[4] = {v.x, v.y, v.z, v.w};

    for (uint32_t b = 0; b < 16 && p + b < end; b++) {
        at->seek(p + b);
        const rd_part_t part = at->part();
        *(uint8_t *)(part.base + (p + b - at->start)) = (uint8_t)(w[b / 4] >> b % 4 * 8);
    }
}

/* Load and store the line at p. Later calls must be for lines behind it. */
RD_DEVICE uint4 rd_side_load(rd_side_at_t *at, uint64_t p)
{
    at->seek(p);
    if (p + 16 <= at->start + at->length || at->start + at->length == at->end)
        return rd_part_load(at->part(), p - at->start);
    return rd_line_gather(at, p, at->end);
}

RD_DEVICE void rd_side_store(rd_side_at_t *at, uint64_t p, uint4 v)
{
    at->seek(p);
    if (p + 16 <= at->start + at->length || at->start + at->length == at->end)
        rd_part_store(at->part(), p - at->start, v);
    else
        rd_line_scatter(at, p, at->end, v);
}

/* The same where the user's elements are narrower than the slot's: an element may be a part of its own. */
RD_DEVICE_FAR uint4 rd_side_load_wide(rd_side_at_t *at, const rd_kreduce_t &r, uint64_t p)
{
    uint32_t w[4] = {0, 0, 0, 0};

    for (uint32_t k = 0; k < 4 && p + 4 * k < at->end; k++) {
        at->seek(p + 4 * k);
        const uint64_t offset = at->offset() + (p + 4 * k - at->start);
        w[k] = rd_part_load(rd_arith_wide::part(r, at->base, offset, offset + 4), 0).x;
    }
    return make_uint4(w[0], w[1], w[2], w[3]);
}

RD_DEVICE_FAR void rd_side_store_wide(rd_side_at_t *at, const rd_kreduce_t &r, uint64_t p, uint4 v)
{
    const uint32_t w[4] = {v.x, v.y, v.z, v.w};

    for (uint32_t k = 0; k < 4 && p + 4 * k < at->end; k++) {
        at->seek(p + 4 * k);
        const uint64_t offset = at->offset() + (p + 4 * k - at->start);
        rd_part_store(rd_arith_wide::part(r, at->base, offset, offset + 4), 0, make_uint4(w[k], 0, 0, 0));
    }
}

RD_DEVICE uint4 rd_input_load(rd_side_at_t *at, const rd_kreduce_t &r, uint64_t p)
{
    return r.narrow ? rd_side_load_wide(at, r, p) : rd_side_load(at, p);
}

RD_DEVICE void rd_output_store(rd_side_at_t *at, const rd_kreduce_t &r, uint64_t p, uint4 v)
{
    if (r.narrow)
        rd_side_store_wide(at, r, p, v);
    else
        rd_side_store(at, p, v);
}

/* Returns the team of this block: blocks are dealt out to the teams in turns. */
RD_DEVICE uint32_t rd_proxy_team(const rd_kproxy_t &s)
{
    return gpu_block() % s.teams;
}

RD_DEVICE uint64_t rd_proxy_step(const rd_kproxy_t &s)
{
    return (uint64_t)(gpu_blocks() / s.teams) * gpu_threads() * 16;
}

RD_DEVICE uint64_t rd_proxy_begin(const rd_kproxy_t &s)
{
    return ((uint64_t)(gpu_block() / s.teams) * gpu_threads() + gpu_thread()) * 16;
}

/* A load from the host's memory takes one or two microseconds, so a thread has several under way. */
constexpr uint32_t RD_PROXY_AHEAD = 4;

/* Copies RD_PROXY_AHEAD lines of a part out of a slot; from one line to the next are `step` bytes. */
RD_DEVICE void rd_lines_out(const rd_part_t &part, uint64_t at, const char *slot, uint64_t step)
{
    uint4 v[RD_PROXY_AHEAD];

#pragma unroll
    for (uint32_t i = 0; i < RD_PROXY_AHEAD; i++)
        v[i] = line_load(slot + i * step);
#pragma unroll
    for (uint32_t i = 0; i < RD_PROXY_AHEAD; i++)
        rd_part_store(part, at + i * step, v[i]);
}

/* Copies RD_PROXY_AHEAD lines of a part into a slot, unscaled. */
RD_DEVICE void rd_lines_in(const rd_part_t &part, uint64_t at, char *slot, uint64_t step)
{
    uint4 v[RD_PROXY_AHEAD];

#pragma unroll
    for (uint32_t i = 0; i < RD_PROXY_AHEAD; i++)
        v[i] = rd_part_load(part, at + i * step);
#pragma unroll
    for (uint32_t i = 0; i < RD_PROXY_AHEAD; i++)
        line_store(slot + i * step, v[i]);
}

RD_DEVICE void rd_proxy_in(const rd_kcomm_t &comm, const rd_kproxied_t &s, const rd_arith_any &number, char *slot,
                           uint32_t round)
{
    rd_side_at_t at(s.in, rd_proxy_table(comm, s), s.reduce.in, s.each, round);

    for (uint64_t p = rd_proxy_begin(s.proxy); p < at.end; p += rd_proxy_step(s.proxy)) {
        const uint4 v = rd_input_load(&at, s.reduce, p);
        line_store(slot + p, number.scaled(v));
        if (s.copied)
            rd_part_store(rd_part(s.reduce.out, at.from, at.from + at.length), p, v);
    }
}

RD_DEVICE void rd_proxy_out(const rd_kcomm_t &comm, const rd_kproxied_t &s, const char *slot, uint32_t round)
{
    rd_side_at_t at(s.out, rd_proxy_table(comm, s), s.reduce.out, s.each, round);
    const uint64_t step = rd_proxy_step(s.proxy);

    for (uint64_t p = rd_proxy_begin(s.proxy); p < at.end;) {
        at.seek(p);
        if (p + (RD_PROXY_AHEAD - 1) * step + 16 <= at.start + at.length && !s.reduce.narrow) {
            rd_lines_out(at.part(), p - at.start, slot + p, step);
            p += RD_PROXY_AHEAD * step;
            continue;
        }
        rd_output_store(&at, s.reduce, p, line_load(slot + p));
        p += step;
    }
}

/* A thread has at most one line. It is loaded first, so that the load overlaps those of the ring's counters. */
RD_DEVICE void rd_proxied_inline(const rd_kcomm_t &comm, const rd_kproxied_t &s, const rd_arith_any &number)
{
    const rd_kpart_t *table = rd_proxy_table(comm, s);
    const uint64_t p = gpu_thread() * 16;
    rd_side_at_t in(s.in, table, s.reduce.in, s.each, 0), out(s.out, table, s.reduce.out, s.each, 0);
    uint4 v = make_uint4(0, 0, 0, 0);

    if (p < in.end)
        v = rd_input_load(&in, s.reduce, p);
    rd_lane_ring_t ring(comm, s.proxy, 0, 1);
    char *lines = s.proxy.inlined + (uint64_t)ring.slot(0) * 4 * RD_KINLINE;
    if (ring.vacant(0))
        ring.raise(0, false, s.task, 0);
    if (p < in.end && !ring.wait.dead) {
        rd_inline_store(lines, p, in.end - p > 8, number.scaled(v), ring.number(0));
        if (s.copied)
            rd_part_store(rd_part(s.reduce.out, 0, in.end), p, v);
    }
    if (out.end != 0) {
        if (p < out.end && !ring.wait.dead)
            v = rd_inline_load(lines + 2 * RD_KINLINE, p, out.end - p > 8, ring.number(0), &ring.wait);
        if (p < out.end && !ring.wait.dead)
            rd_output_store(&out, s.reduce, p, v);
        ring.wait.dead = block_any(ring.wait.dead);
        ring.seen = ring.first + 1; /* the proxy stores the output last, so the trigger is done */
    }
    ring.keep(1);
}

RD_KERNEL(512)
rd_proxied(RD_WORK(rd_kwork_proxied_t))
{
    const rd_kproxied_t &s = work.proxied;
    const uint32_t slots = s.proxy.slots, channels = s.proxy.channels;

    gpu_begin();
    if (s.rounds == 0) /* launched only so that its local memory is allocated: see launch.c */
        return;
    const uint32_t team = rd_proxy_team(s.proxy), n = rd_kproxy_part(s.rounds, channels, team);
    const rd_arith_any number(s.reduce, 1);
    if (s.inlined) {
        rd_proxied_inline(work.comm, s, number);
        return;
    }
    rd_lane_ring_t ring(work.comm, s.proxy, team * RD_KPROXY_LANES, gpu_blocks() / s.proxy.teams);
    char *area = s.proxy.area + (uint64_t)team * slots * 2 * s.proxy.slot;
    const uint32_t more = s.out.n ? slots : 0; /* turns after all input is in slots */
    for (uint32_t i = 0; i < n + more; i++) {
        char *slot = area + (uint64_t)ring.slot(i) * 2 * s.proxy.slot;
        if (i >= slots && i - slots < n) {
            if (!ring.await((int32_t)(i - slots)))
                break;
            rd_proxy_out(work.comm, s, slot + s.proxy.slot, team + (i - slots) * channels);
        }
        if (i < n) {
            if (!ring.vacant(i))
                break;
            rd_proxy_in(work.comm, s, number, slot, team + i * channels);
            ring.raise(i, s.in.n != 0, s.task, team + i * channels);
        }
    }
    ring.keep(n);
}

/* ---- messages */

/* A walk through the pieces of a pair's messages that one proxy channel carries. */
struct rd_pieces_t {
    const rd_kmessage_t *messages; /* the first one of the pair */
    const rd_kpair_t &pair;
    const rd_kproxy_t &proxy;
    uint32_t channel, i, piece; /* bytes of message i's pieces */
    uint64_t at;                /* where the next piece begins in message i */

    RD_MEMBER rd_pieces_t(const rd_kmessage_t *all, const rd_kpair_t &p, const rd_kproxy_t &s, uint32_t c)
        : pair(p), proxy(s)
    {
        messages = all + p.first;
        channel = c;
        i = 0;
        find();
    }

    /* Finds the proxy channel's first piece in message i or in the first message behind it that has one. */
    RD_MEMBER void find()
    {
        for (; i < pair.count; i++) {
            piece =
                by_gdr() ? RD_KGDR_RUN : rd_kpiece(message().bytes, 1, proxy.channels, proxy.least, proxy.message_slot);
            at = (uint64_t)channel * piece;
            if (at < length())
                return;
        }
    }

    RD_MEMBER const rd_kmessage_t &message() const
    {
        return messages[i];
    }

    RD_MEMBER bool more() const
    {
        return i < pair.count;
    }

    /* Returns true if message i goes by GDR and not through slots. The walk then has a run of messages as one piece,
     * whose length is their number, and proxy channel 0 carries it. */
    RD_MEMBER bool by_gdr() const
    {
        return (message().bytes & RD_KGDR) != 0;
    }

    RD_MEMBER uint64_t length() const
    {
        return by_gdr() ? rd_kgdr_run(&message(), pair.count - i) : message().bytes;
    }

    RD_MEMBER rd_part_t next()
    {
        const rd_kmessage_t &now = message();
        const uint64_t left = length() - at, bytes = left < piece ? left : piece;
        const rd_part_t part = rd_part(now.buffer, at, at + bytes);

        at += (uint64_t)proxy.channels * piece;
        if (at >= length()) {
            i += by_gdr() ? (uint32_t)bytes : 1;
            find();
        }
        return part;
    }

    RD_MEMBER uint32_t flags() const
    {
        return RD_KMESSAGE_PAIR(pair.peer, pair.send) | (proxy.captured ? RD_KMESSAGE_CAPTURED : 0) |
               (length() > piece ? RD_KMESSAGE_LONG : 0) | (by_gdr() ? RD_KMESSAGE_GDR : 0);
    }
};

RD_DEVICE void rd_piece_in(const rd_part_t &part, char *slot)
{
    const uint64_t step = gpu_threads() * 16;
    uint64_t p = gpu_thread() * 16;

    for (; p + (RD_PROXY_AHEAD - 1) * step < part.bytes; p += RD_PROXY_AHEAD * step)
        rd_lines_in(part, p, slot + p, step);
    for (; p < part.bytes; p += step)
        line_store(slot + p, rd_part_load(part, p));
}

RD_DEVICE void rd_piece_out(const rd_part_t &part, const char *slot)
{
    const uint64_t step = gpu_threads() * 16;
    uint64_t p = gpu_thread() * 16;

    for (; p + (RD_PROXY_AHEAD - 1) * step < part.bytes; p += RD_PROXY_AHEAD * step)
        rd_lines_out(part, p, slot + p, step);
    for (; p < part.bytes; p += step)
        rd_part_store(part, p, line_load(slot + p));
}

constexpr uint32_t RD_PROXY_OVER_MS = 5000;

/* After a failure: waits until the network no longer uses the buffers, because they are the user's again when the
 * kernel ends. The wait has a limit, because the proxy may be stopped. */
RD_DEVICE_FAR void rd_proxy_await_over(const rd_klane_t *lane)
{
    const uint32_t began = gpu_ms();

    while (word_load(&lane->over) == 0 && (int32_t)(gpu_ms() - began - RD_PROXY_OVER_MS) <= 0) {
    }
}

/* Writes into a slot, for the proxy, where the messages lie. */
RD_DEVICE void rd_messages_name(const rd_kmessage_t *messages, uint32_t n, char *slot)
{
    for (uint32_t i = gpu_thread(); i < n; i += gpu_threads()) {
        const uint64_t buffer = (uint64_t)messages[i].buffer, bytes = messages[i].bytes;
        line_store(slot + i * sizeof messages[i],
                   make_uint4((uint32_t)buffer, (uint32_t)(buffer >> 32), (uint32_t)bytes, (uint32_t)(bytes >> 32)));
    }
}

/* The work of block `block` of those that serve pairs. */
RD_DEVICE void rd_proxied_serve(const rd_kwork_t &work, uint32_t block)
{
    const rd_kmessage_t *m = work.proxied_messages.messages.here;
    const rd_kproxy_t &proxy = work.proxied_messages.proxy;
    const uint32_t slots = proxy.slots, p = block / proxy.teams, team = block % proxy.teams;
    const rd_kpair_t &pair = work.proxied_messages.pair[p];

    rd_lane_ring_t collectives(work.comm, proxy, team * RD_KPROXY_LANES, 1);
    const bool vacant = collectives.all_vacant();
    rd_lane_ring_t ring(work.comm, proxy, team * RD_KPROXY_LANES + 1 + p, 1);
    ring.wait.dead = !vacant;
    rd_pieces_t ahead(m, pair, proxy, team), behind(m, pair, proxy, team);
    char *base = proxy.area + (uint64_t)team * slots * 2 * proxy.slot;
    base += (uint64_t)p * slots * proxy.message_slot;
    uint32_t i = 0, n = 0; /* pieces begun; pieces finished */
    bool zcopies = false;  /* a message has gone by GDR */
    while (vacant && behind.more()) {
        if (i - n == slots || !ahead.more()) {
            const bool by_gdr = behind.by_gdr();
            const rd_part_t part = behind.next();
            if (!ring.await((int32_t)n))
                break;
            if (!pair.send && !by_gdr)
                rd_piece_out(part, base + (uint64_t)ring.slot(n) * proxy.message_slot);
            n++;
        } else {
            const uint32_t flags = ahead.flags();
            const bool by_gdr = ahead.by_gdr();
            char *slot = base + (uint64_t)ring.slot(i) * proxy.message_slot;
            if (by_gdr)
                rd_messages_name(&ahead.message(), (uint32_t)ahead.length(), slot);
            const rd_part_t part = ahead.next();
            if (pair.send && !by_gdr)
                rd_piece_in(part, slot);
            ring.raise(i, pair.send != 0 || by_gdr, (uint32_t)part.bytes, flags);
            zcopies = zcopies || by_gdr;
            i++;
        }
    }
    if (zcopies && ring.wait.dead && gpu_thread() == 0)
        rd_proxy_await_over(proxy.lanes);
    ring.keep(i);
}

RD_KERNEL(512)
rd_proxied_messages(RD_WORK(rd_kwork_t))
{
    gpu_begin();
    rd_proxied_serve(work, gpu_block());
}

#endif
