/* Short operations, which take cells of banks: lib/kernels/fused.cuh, epoch.cuh.
 *
 * Two ranks; two banks of two cells. Operation e is an epoch: most are short, one pass in a cell; one in twelve takes
 * a bank as a whole, and one in twelve both, in two passes. In some both ranks send, in others one alone. A rank launches
 * as many short ones together as it likes, up to the number of all cells, and takes them in any order; what its peer
 * launches together is up to the peer. A slot is there when it is not at rest. Before a rank writes into a cell, or a
 * bank, the peer must have begun an epoch after the last one that used it; what a launch says that it has begun is its
 * first epoch. Nothing orders stores but the end of a launch, and the fence between the two passes of an operation.
 * Epochs and passes come round (modulo 2^32; 24 and 4 here). State: slots and begun epochs as they are seen and as they
 * are held back, the control pages, and where each rank stands.
 *
 * Checked for ever: each word arrives once, in its place and operation; a slot is written only when it is at rest for
 * everybody; somebody can always move.
 *
 * BUG=1  the gate does not ask what the peer has begun
 * BUG=2  a launch says that it has begun its last epoch
 * BUG=3  an operation that takes a whole bank asks no more than a short one
 * BUG=4  short operations ask for the last one that took whole banks alone
 * BUG=5  a launch of more operations than there are cells */
#ifndef BUG
#define BUG 0
#endif

#define REST 0
#define EPOCHS 24
#define REACH 4 /* passes until a cell comes round */
#define MOST (BUG == 5 -> 5 : 4)

/* Slot of pass p's place in rank r's window, stored into by the peer; the same, put to rest by r itself; the epoch that
 * the peer says it has begun. Bank b has cells b and b + 2. */
#define SLOT(r, c) ((r) * 4 + (c))
#define CLEAN(r, c) (8 + SLOT(r, c))
#define BEGUN(r) (16 + (r))
#define STORES 18
#define PLACE(s) ((s) >= 8 && (s) < 16 -> (s) - 8 : (s))
#define OWN(w) (15 << SLOT(1 - (w), 0) | 15 << CLEAN(w, 0) | 1 << BEGUN(1 - (w)))
#include "memory.pml"

#define both_banks(e) ((e) % 12 == 5)
#define one_bank(e) ((e) % 12 == 11)
#define whole(e) (both_banks(e) || one_bank(e))
#define sends(r, e) ((e) % 8 == 0 || ((e) % 8 < 5) == ((r) == 0))
#define data_of(r, e) (1 + ((e) * 2 + (r)) % 7)

#define later(a, b) (((a) + EPOCHS - (b)) % EPOCHS > 0 && ((a) + EPOCHS - (b)) % EPOCHS < EPOCHS / 2)
#define latest(a, b) (later(a, b) -> (a) : (b))
#define at_rest(r, c) (seen[SLOT(r, c)] == REST && !(holding & (1 << SLOT(r, c) | 1 << CLEAN(r, c))))

/* rd_epoch_t::last, of the i-th pass of the launch */
#define reach(i) (is_whole && BUG != 3 -> 2 : REACH)
#define bound(i) ((number + (i) + EPOCHS - reach(i)) % EPOCHS)
#define epoch_of(i) ((number + (is_whole -> 0 : (i))) % EPOCHS)
#define cell_of(i) (is_whole -> (first + (i)) & 1 : (first + (i)) & 3)
#define is_there(i) (seen[SLOT(rank, cell[i])] != REST && (!is_whole || seen[SLOT(rank, cell[i] + 2)] != REST))

inline prepare()
{
    sent = 0;
    taken = 0;
    k = 0;
    do
    :: k < passes ->
        cell[k] = cell_of(k);
        limit[k] = bound(k);
        data[k] = data_of(rank, epoch_of(k));
        theirs[k] = data_of(1 - rank, epoch_of(k));
        if
        :: BUG == 4 && !is_whole -> limit[k] = used[cell[k] & 1]
        :: else ->
            if
            :: later(used[cell[k] & 1], limit[k]) -> limit[k] = used[cell[k] & 1]
            :: else
            fi
        fi;
        if
        :: !sends(rank, epoch_of(k)) -> sent = sent | 1 << k
        :: else
        fi;
        if
        :: !sends(1 - rank, epoch_of(k)) -> taken = taken | 1 << k
        :: else
        fi;
        k++
    :: else -> break
    od;
    k = 0
}

#define may_send(i)                                                                                                    \
    ((i) < passes && !(sent & 1 << (i)) && (BUG == 1 || later(seen[BEGUN(rank)], limit[i])) &&                         \
     (!is_whole || (i) == 0 || taken & 1))
#define may_take(i) ((i) < passes && !(taken & 1 << (i)) && is_there(i))

inline send(i)
{
    assert(at_rest(1 - rank, cell[i]) && (!is_whole || at_rest(1 - rank, cell[i] + 2)));
    hold(SLOT(1 - rank, cell[i]), data[i]);
    if
    :: is_whole -> hold(SLOT(1 - rank, cell[i] + 2), data[i])
    :: else
    fi;
    sent = sent | 1 << i
}

inline take(i)
{
    assert(seen[SLOT(rank, cell[i])] == theirs[i]);
    hold(CLEAN(rank, cell[i]), REST);
    if
    :: is_whole -> hold(CLEAN(rank, cell[i] + 2), REST)
    :: else
    fi;
    taken = taken | 1 << i
}

proctype cells(byte rank)
{
    byte number = 1, first, passes, sent, taken, k, used[2], cell[5], limit[5], data[5], theirs[5];
    bool is_whole;

    do
    ::  atomic { /* what the next launch has */
            is_whole = whole(number);
            passes = (both_banks(number) -> 2 : 1);
            do
            :: !is_whole && passes < MOST && !whole((number + passes) % EPOCHS) -> passes++
            :: break
            od
        }
        d_step { /* announce; and what there is nothing to do for */
            k = number;
            if
            :: BUG == 2 && !is_whole -> k = (number + passes - 1) % EPOCHS
            :: else
            fi;
            hold(BEGUN(1 - rank), k);
            prepare()
        }
        do
        :: d_step { may_send(0) -> send(0) }
        :: d_step { may_send(1) -> send(1) }
        :: d_step { may_send(2) -> send(2) }
        :: d_step { may_send(3) -> send(3) }
        :: d_step { may_send(4) -> send(4) }
        :: d_step { may_take(0) -> take(0) }
        :: d_step { may_take(1) -> take(1) }
        :: d_step { may_take(2) -> take(2) }
        :: d_step { may_take(3) -> take(3) }
        :: d_step { may_take(4) -> take(4) }
        :: sent == (1 << passes) - 1 && taken == (1 << passes) - 1 -> break
        od;
        released(rank); /* the end of the launch */
        d_step {
            if
            :: is_whole ->
                used[first & 1] = number;
                if
                :: passes > 1 -> used[(first + 1) & 1] = number
                :: else
                fi
            :: else ->
                number = (number + passes - 1) % EPOCHS;
                used[0] = latest(used[0], (number + EPOCHS - REACH) % EPOCHS);
                used[1] = latest(used[1], (number + EPOCHS - REACH) % EPOCHS)
            fi;
            number = (number + 1) % EPOCHS;
            first = (first + passes) & 3;
            passes = 0;
            sent = 0;
            taken = 0;
            k = 0;
            do
            :: k < 5 ->
                cell[k] = 0;
                limit[k] = 0;
                data[k] = 0;
                theirs[k] = 0;
                k++
            :: else -> break
            od;
            k = 0
        }
    od
}

init
{
    atomic {
        run cells(0);
        run cells(1)
    }
}
