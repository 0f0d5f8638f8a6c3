/* A ring of GPUs through banks that are at rest all ones: lib/kernels/ring.cuh, epoch.cuh, rd_lines_ll in proto.cuh.
 *
 * Three ranks gather their blocks, each rank from the one before to the next, as one warp of each does it for its
 * tile. Each operation is an epoch: a launch of 1, 2 or 3 passes, after one another in every order of two. Passes take
 * turns at two banks, counted over all epochs. A slot is there when it is not at rest; who has taken it puts the ones
 * back. Nothing orders stores but the fence of the gate and the end of a launch. Epochs and passes come round (modulo
 * 2^32; 18 and 4 here). State: slots and begun epochs as they are seen and as they are held back, the control pages,
 * and where each rank stands.
 *
 * Checked for ever: each block arrives once, in its place and pass; a slot is written only when it is at rest for
 * everybody; somebody can always move.
 *
 * BUG=1  no fence between two passes
 * BUG=2  a slot is put to rest before it is loaded
 * BUG=3  one bank for all passes
 * BUG=4  a slot is not put to rest */
#ifndef BUG
#define BUG 0
#endif

#define REST 0 /* what a slot is seen to hold at rest */
#define EPOCHS 18

/* Slot s of bank b at rank r, stored into by the rank before; the same place, put to rest by r itself; the epoch that
 * the next rank says it has begun. */
#define SLOT(r, b, s) ((r) * 4 + (b) * 2 + (s))
#define CLEAN(r, b, s) (12 + SLOT(r, b, s))
#define BEGUN(r) (24 + (r))
#define NEXT(r) (((r) + 1) % 3)
#define BEFORE(r) (((r) + 2) % 3)
#define STORES 27
#define PLACE(s) ((s) >= 12 && (s) < 24 -> (s) - 12 : (s))
#define OWN(w) (15 << 4 * NEXT(w) | 15 << (12 + 4 * (w)) | 1 << BEGUN(BEFORE(w)))
#include "memory.pml"

/* 1, 1, 2, 1, 3, 2, 2, 3, 3: what the call says, so all ranks know. */
#define bits(e) (1 << (e) % 9)
#define passes_of(e) (bits(e) & (1 | 2 | 8) -> 1 : (bits(e) & (4 | 32 | 64) -> 2 : 3))

/* What a rank's block holds in a pass. */
#define value_of(rank, pass) (1 + (rank) + 3 * ((pass) & 3))
#define at_rest(r, b, s) (seen[SLOT(r, b, s)] == REST && !(holding & (1 << SLOT(r, b, s) | 1 << CLEAN(r, b, s))))
#define later(a, b) (((a) + EPOCHS - (b)) % EPOCHS > 0 && ((a) + EPOCHS - (b)) % EPOCHS < EPOCHS / 2)

/* rd_epoch_t::gate */
inline gate()
{
    if
    :: pass > 0 && BUG != 1 -> released(rank)
    :: else
    fi;
    pass > 1 || later(seen[BEGUN(rank)], used[bank])
}

inline send(s, value)
{
    assert(at_rest(NEXT(rank), bank, s));
    hold(SLOT(NEXT(rank), bank, s), value)
}

inline wait_for(s)
{
    seen[SLOT(rank, bank, s)] != REST;
    if
    :: BUG == 2 -> store(CLEAN(rank, bank, s), REST)
    :: else
    fi
}

inline take(s)
{
    assert(seen[SLOT(rank, bank, s)] == value_of((rank + 2 - (s)) % 3, first + pass));
    if
    :: BUG == 2 || BUG == 4
    :: else -> hold(CLEAN(rank, bank, s), REST)
    fi
}

proctype ring(byte rank)
{
    byte epoch, first, pass, bank, used[2];

    do
    ::  d_step {
            epoch = (epoch + 1) % EPOCHS;
            hold(BEGUN(BEFORE(rank)), epoch) /* announce */
        }
        do
        :: pass < passes_of(epoch) ->
            bank = (BUG == 3 -> 0 : (first + pass) & 1);
            gate();
            d_step {
                send(0, value_of(rank, first + pass))
            }
            wait_for(0);
            d_step {
                take(0);
                send(1, value_of(BEFORE(rank), first + pass))
            }
            wait_for(1);
            d_step {
                take(1);
                pass++
            }
        :: else -> break
        od;
        released(rank); /* the end of the launch */
        d_step {
            used[first & 1] = epoch;
            if
            :: pass > 1 -> used[(first + 1) & 1] = epoch
            :: else
            fi;
            first = (first + pass) & 3;
            pass = 0;
            bank = 0
        }
    od
}

init
{
    atomic {
        run ring(0);
        run ring(1);
        run ring(2)
    }
}
