/* From rank to rank in one direction: broadcast begins at the root, reduce begins behind it and ends at it. Every warp
 * follows a unit of its own.
 *
 *   wire bytes out of a rank   the message
 *   slot in a bank             [unit]
 *
 * Nothing comes back from the next rank, so from the third pass on a warp waits for the credit of the one that reads.
 */
#ifndef RD_CHAIN_CUH
#define RD_CHAIN_CUH

#include "../sched/program.h"
#include "codec.cuh"
#include "epoch.cuh"
#include "number.cuh"

template <class CODEC, class NUMBER, uint32_t THREADS>
RD_KERNEL(THREADS)
rd_chain(RD_WORK)
{
    const rd_kreduce_t &r = work.reduce;
    const uint32_t n = (uint32_t)work.comm.nranks, rank = (uint32_t)work.comm.rank, root = (uint32_t)r.root;
    const uint32_t lane = rd_lane(), unit = (gpu_block() * gpu_threads() + gpu_thread()) / 32;
    const uint32_t next = rank + 1 == n ? 0 : rank + 1, previous = rank == 0 ? n - 1 : rank - 1;
    const bool reduces = r.coll == RD_REDUCE;
    const bool receives = rank != (reduces ? (root + 1 == n ? 0 : root + 1) : root);
    const bool sends = reduces ? rank != root : next != root;
    const uint64_t bytes = r.count * rd_number_size(r.type);
    const rd_part_t in = rd_part(r.in, 0, bytes), out = rd_part(r.out, 0, bytes);

    gpu_begin();
    rd_epoch_t e(work.comm, next);
    const NUMBER number(r, n);
    for (uint32_t pass = 0; pass < r.passes && unit < r.units; pass++) {
        const uint64_t at = ((uint64_t)pass * r.units + unit) * CODEC::DATA;
        uint4 v[CODEC::ITEMS], x[CODEC::ITEMS];
        if (reduces || !receives)
            rd_unit_load<CODEC>(x, in, at, lane);
        if (pass == 0)
            e.announce();
        if (receives) {
            char *slot = e.bank(rank, pass) + (uint64_t)unit * CODEC::WIRE;
            e.wait.peer = previous;
            if (!CODEC::receive(v, slot, lane, e.wait))
                break;
            CODEC::clean(slot, lane);
            e.give_credit(previous, unit, pass, lane);
        }
#pragma unroll
        for (uint32_t j = 0; j < CODEC::ITEMS; j++) {
            if (reduces)
                x[j] = number.scaled(x[j]);
            if (!receives)
                v[j] = x[j];
            else if (reduces)
                v[j] = number.two(v[j], x[j]);
        }
        if (sends) {
            if (!e.gate(pass) || !e.credit(unit, pass))
                break;
            CODEC::send(e.bank(next, pass) + (uint64_t)unit * CODEC::WIRE, v, lane);
        }
        if (reduces && rank == root)
#pragma unroll
            for (uint32_t j = 0; j < CODEC::ITEMS; j++)
                v[j] = number.finished(v[j]);
        if (!reduces || rank == root)
            rd_unit_store<CODEC>(out, at, v, lane);
    }
    e.end(r.passes);
}

#endif
