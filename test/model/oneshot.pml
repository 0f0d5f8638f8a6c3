/* Everybody to everybody in one hop, through banks, by words of data alone: lib/kernels/oneshot.cuh, epoch.cuh,
 * rd_lines_sentinel in proto.cuh.
 *
 * Three ranks, each of which sends to its peers, takes what comes from them and puts the slots to rest; a rank's two
 * warps are one process here, which serves the peers one by one. Each operation is an epoch, a launch of some passes:
 * allreduces of 1, 2 and 3, and broadcasts of 1 and 2, whose root hears nothing from the others. A slot is there when
 * it is not at rest, all ones; data that look so are sent as other data. Before a rank writes into a bank the peer
 * must have begun an epoch after the last one that used it. Nothing orders stores but the fence of the gate and the
 * end of a launch. Epochs and passes come round (modulo 2^32; 7 and 4 here). State: slots and begun epochs as they are
 * seen and as they are held back, the control pages, and where each rank stands.
 *
 * Checked for ever: each word arrives once, in its place and pass; a slot is written only when it is at rest for
 * everybody; somebody can always move.
 *
 * BUG=1  the gate does not ask what the peer has begun
 * BUG=2  no fence between two passes
 * BUG=3  data that look like a slot at rest are sent as they are
 * BUG=4  a broadcast of three passes
 * BUG=5  of an epoch of several passes one bank alone is noted as used */
#ifndef BUG
#define BUG 0
#endif

#define REST 0 /* what a slot is seen to hold at rest */
#define EPOCHS 7 /* nobody is more than two ahead */

/* Rank r's k-th peer is r + 1 + k, to whom r is peer number 1 - k. Slot of bank b at rank r, stored into by that peer;
 * the same place, put to rest by r itself; the epoch that the peer says it has begun. */
#define PEER(r, k) (((r) + 1 + (k)) % 3)
#define SLOT(r, b, k) ((r) * 4 + (b) * 2 + (k))
#define CLEAN(r, b, k) (12 + SLOT(r, b, k))
#define BEGUN(r, k) (24 + 2 * (r) + (k))
#define STORES 30
#define PLACE(s) ((s) >= 12 && (s) < 24 -> (s) - 12 : (s))
#define TO_PEER(r, k) (5 << SLOT(r, 0, k) | 1 << BEGUN(r, k))
#define OWN(w) (TO_PEER(PEER(w, 0), 1) | TO_PEER(PEER(w, 1), 0) | 15 << CLEAN(w, 0, 0))
#include "memory.pml"

/* What the call says, so all ranks know. */
#define is(e, n) ((e) % 7 == (n))
#define passes_of(e) (is(e, 5) -> 3 : (is(e, 1) || is(e, 2) || is(e, 4) -> 2 + (BUG == 4 && is(e, 2)) : 1))
#define everybody(e) (is(e, 0) || is(e, 1) || is(e, 5))
#define root_of(e) (is(e, 3) -> 1 : (is(e, 6) -> 2 : 0))
#define sends(e) (everybody(e) || rank == root_of(e))
#define takes(e, k) (everybody(e) || PEER(rank, k) == root_of(e))

/* What a rank sends in a pass; all ones now and then, which are sent as something else. */
#define data_of(r, pass) (((r) + (pass)) & 3)
#if BUG == 3
#define guard(v) (v)
#else
#define guard(v) ((v) == REST -> 4 : (v))
#endif

#define at_rest(r, b, k) (seen[SLOT(r, b, k)] == REST && !(holding & (1 << SLOT(r, b, k) | 1 << CLEAN(r, b, k))))
#define later(a, b) (((a) + EPOCHS - (b)) % EPOCHS > 0 && ((a) + EPOCHS - (b)) % EPOCHS < 5)

/* rd_epoch_t::gate, the look at what the peer has begun */
#define is_free(k) (pass > 1 || BUG == 1 || later(seen[BEGUN(rank, k)], used[bank]))

inline send(k)
{
    d_step {
        is_free(k);
        assert(at_rest(PEER(rank, k), bank, 1 - (k)));
        hold(SLOT(PEER(rank, k), bank, 1 - (k)), guard(data_of(rank, first + pass)))
    }
}

inline take(k)
{
    if
    :: takes(epoch, k) ->
        d_step {
            seen[SLOT(rank, bank, k)] != REST;
            assert(seen[SLOT(rank, bank, k)] == guard(data_of(PEER(rank, k), first + pass)));
            hold(CLEAN(rank, bank, k), REST)
        }
    :: else
    fi
}

proctype oneshot(byte rank)
{
    byte epoch = 1, first, pass, bank, used[2];
    bit turn;

    do
    ::  d_step { /* announce */
            hold(BEGUN(PEER(rank, 0), 1), epoch);
            hold(BEGUN(PEER(rank, 1), 0), epoch)
        }
        do
        :: pass < passes_of(epoch) ->
            atomic {
                bank = (first + pass) & 1;
                pass == 0 || BUG == 2 || released(rank); /* the gate's fence */
                if
                :: sends(epoch) ->
                    if
                    :: turn = 0
                    :: turn = 1
                    fi;
                    send(turn);
                    send(1 - turn);
                    turn = 0
                :: else
                fi
            }
            take(0);
            take(1);
            pass++
        :: else -> break
        od;
        released(rank); /* the end of the launch */
        d_step {
            used[first & 1] = epoch;
            if
            :: pass > 1 && BUG != 5 -> used[first + 1 & 1] = epoch
            :: else
            fi;
            first = (first + pass) & 3;
            pass = 0;
            bank = 0;
            epoch = (epoch + 1) % EPOCHS
        }
    od
}

init
{
    atomic {
        run oneshot(0);
        run oneshot(1);
        run oneshot(2)
    }
}
