/* Boards: lib/transport/shm/board.h, as lib/exec/host/run_board.c and run.c (step_board) use them.
 *
 * Three ranks run the same operations, over and over: rank 0 writes, the others read; rank 1 writes, rank 2 reads; rank
 * 0 writes again; all write and all read. Each operation uses up one slot of the ring of every board, whoever writes, so
 * a message is found by counting operations. A slot is two words, data and flag; a board has two slots, and the counter
 * of what its rank has read. Numbers of operations are modulo 8 here. State: the boards as they are seen and as they are
 * held back, where each rank is, and who has yet to read each slot.
 *
 * Checked for ever: each message is read by all that it is for, with the right value; no slot is written before all
 * have read it; somebody can always move.
 *
 * BUG=1  the flag is stored without release
 * BUG=2  the data is loaded before the flag: no acquire
 * BUG=3  a rank says that it has read before it loads
 * BUG=4  one slot too many is taken for free
 * BUG=5  who has read on beyond the message counts as one who has not: the difference has no sign */
#ifndef BUG
#define BUG 0
#endif

#define RING 2
#define MASK 7 /* of numbers */

#define DATA(r, n) ((r) * 5 + ((n) & 1))
#define FLAG(r, n) ((r) * 5 + 2 + ((n) & 1))
#define READ(r) ((r) * 5 + 4)
#define STORES 15
#define PLACE(s) (s)
#define OWN(w) (31 << (5 * (w)))
#include "memory.pml"

byte unread[6]; /* of each slot of each board: a bit for each rank that has yet to read it */

#define SLOT(r, n) (2 * (r) + ((n) & 1))
#define value_of(r, n) (8 * (r) + ((n) & MASK) + 1)

#define writes(r) (turn == 3 || (turn == 1 -> (r) == 1 : (r) == 0))
#define reads(r, w) (writes(w) && (r) != (w) && (turn != 1 || (r) == 2))
#define readers(w) (reads(0, w) + 2 * reads(1, w) + 4 * reads(2, w))

/* rd_board_over */
#define behind(r) ((at + 1 - seen[READ(r)]) & MASK)
#define room(r) (behind(r) <= RING + (BUG == 4) || (BUG != 5 && behind(r) > 4))

/* rd_board_ready, the copy, rd_board_publish */
inline write_slot()
{
    room(a);
    room(b);
    d_step {
        assert(unread[SLOT(me, at)] == 0);
        unread[SLOT(me, at)] = readers(me)
    }
    store(DATA(me, at), value_of(me, at));
    BUG == 1 || released(me);
    store(FLAG(me, at), (at + 1) & MASK)
}

inline load_data(w)
{
    d_step {
        value = seen[DATA(w, at)];
        unread[SLOT(w, at)] = unread[SLOT(w, at)] & ~(1 << me)
    }
}

/* rd_board_arrived, the copy */
inline read_slot(w)
{
    if
    :: BUG == 2 -> load_data(w)
    :: else
    fi;
    seen[FLAG(w, at)] == ((at + 1) & MASK);
    if
    :: BUG == 2
    :: else -> load_data(w)
    fi;
    d_step {
        assert(value == value_of(w, at));
        value = 0
    }
}

/* rd_board_passed */
inline say_read()
{
    released(me);
    store(READ(me), (at + 1) & MASK)
}

active [3] proctype rank()
{
    byte me = _pid - 1, a = (_pid == 1 -> 1 : 0), b = (_pid == 3 -> 1 : 2), at, turn, value;

    do
    ::  if
        :: writes(me) -> write_slot()
        :: else
        fi;
        if
        :: BUG == 3 -> say_read()
        :: else
        fi;
        if
        :: reads(me, a) -> read_slot(a)
        :: else
        fi;
        if
        :: reads(me, b) -> read_slot(b)
        :: else
        fi;
        if
        :: BUG != 3 -> say_read()
        :: else
        fi;
        d_step {
            at = (at + 1) & MASK;
            turn = (turn + 1) % 4
        }
    od
}
