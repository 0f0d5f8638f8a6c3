/* Fifos of LL128 pieces between GPUs: lib/kernels/fifo.cuh, p2p.cuh, and rd_lines_ll128 in proto.cuh.
 *
 * Rank 0 sends messages to rank 1, which hands each on to rank 2; every put and take of a message is a launch of its
 * own, which knows the counts that the last one has left and nothing else. Messages have 3, 2, 3, 2... pieces, which
 * move two at a time where there are two. A piece is two lines, each of which is seen whole, with its flag: the
 * piece's number, which comes round in the kernels, too (modulo 2^32; 8 here). A fifo has four slots; the receiver
 * says what it has taken when half of them are free again. Nothing but the end of a kernel orders stores. State: lines
 * and words as they are seen and as they are held back, the counts, and which slots hold something that was not read.
 *
 * Checked for ever: each piece arrives once, in order, both lines of it; no line is written before it was read;
 * somebody can always move.
 *
 * BUG=1  a piece counts as there when its first line is: no vote of the warp
 * BUG=2  what is taken is said before it is looked at
 * BUG=3  what is taken is said at exact halves only: two pieces at a time may step over them
 * BUG=4  flags come round with the slots: their numbers are modulo 4
 * BUG=5  a launch takes all slots for free, instead of looking */
#ifndef BUG
#define BUG 0
#endif

#define SLOTS 4
#define MASK 7 /* of numbers */
#if BUG == 4
#define FLAG(n) ((n) & 3)
#else
#define FLAG(n) ((n) & MASK)
#endif

/* Connection c: from rank c to rank c + 1. Line i of the slot of piece n; a line's content is its flag. */
#define LINE(c, n, i) ((c) * 9 + 2 * ((n) & 3) + (i))
#define TAKEN(c) ((c) * 9 + 8)
#define STORES 18
#define PLACE(s) (s)
#define OWN(w) ((w) == 0 -> 255 : ((w) == 1 -> 255 << 9 | 1 << 8 : 1 << 17))
#include "memory.pml"

int unread; /* a bit for each line */

#define UNREAD(c, n, i) (1 << (8 * (c) + 2 * ((n) & 3) + (i)))

inline send_line(c, n, i)
{
    assert(!(unread & UNREAD(c, n, i)));
    unread = unread | UNREAD(c, n, i);
    hold(LINE(c, n, i), ((n) + 1) & MASK)
}

/* rd_fifo_t::put */
inline put(c, pieces)
{
    do
    :: ((moved + pieces - cleaned) & MASK) <= SLOTS -> break
    :: ((moved + pieces - cleaned) & MASK) > SLOTS && cleaned != seen[TAKEN(c)] -> cleaned = seen[TAKEN(c)]
    od;
    true; /* Spin lets no loop end in a d_step */
    d_step {
        send_line(c, moved, 0);
        send_line(c, moved, 1);
        if
        :: pieces == 2 ->
            send_line(c, moved + 1, 0);
            send_line(c, moved + 1, 1)
        :: else
        fi;
        moved = (moved + pieces) & MASK
    }
}

#define there(c, n, i) (FLAG(seen[LINE(c, n, i)]) == FLAG((n) + 1))
#define piece_there(c, n) (there(c, n, 0) && (BUG == 1 || there(c, n, 1)))

inline load_line(c, n, i)
{
    assert(seen[LINE(c, n, i)] == (((n) + 1) & MASK));
    unread = unread & ~UNREAD(c, n, i)
}

inline say_taken(c, count)
{
    if
    :: (BUG == 3 -> (count) % (SLOTS / 2) == 0 : (count) % (SLOTS / 2) < pieces) -> store(TAKEN(c), (count) & MASK)
    :: else
    fi
}

/* rd_fifo_t::take; what was there in one look stays there */
inline take(c, pieces)
{
    if
    :: BUG == 2 -> say_taken(c, received + pieces)
    :: else
    fi;
    d_step {
        piece_there(c, received) && (pieces == 1 || piece_there(c, received + 1));
        load_line(c, received, 0);
        load_line(c, received, 1);
        if
        :: pieces == 2 ->
            load_line(c, received + 1, 0);
            load_line(c, received + 1, 1)
        :: else
        fi;
        received = (received + pieces) & MASK
    }
    if
    :: BUG == 2
    :: else -> say_taken(c, received)
    fi
}

/* A launch that sends a message; all it has stored is seen before the next one begins. */
inline send_message(c, length)
{
    d_step {
        cleaned = (BUG == 5 -> moved : (moved - SLOTS) & MASK);
        pieces = 2
    }
    put(c, pieces);
    if
    :: length == 3 ->
        pieces = 1;
        put(c, pieces)
    :: else
    fi;
    d_step {
        cleaned = 0;
        pieces = 0
    }
    released(c)
}

inline receive_message(c, length)
{
    pieces = 2;
    take(c, pieces);
    if
    :: length == 3 ->
        pieces = 1;
        take(c, pieces)
    :: else
    fi;
    pieces = 0;
    released((c) + 1)
}

proctype rank_0()
{
    byte moved, cleaned, pieces, length = 3;

    do
    ::  send_message(0, length);
        length = 5 - length
    od
}

proctype rank_1()
{
    byte moved, cleaned, received, pieces, length = 3;

    do
    ::  receive_message(0, length);
        send_message(1, length);
        length = 5 - length
    od
}

proctype rank_2()
{
    byte received, pieces, length = 3;

    do
    ::  receive_message(1, length);
        length = 5 - length
    od
}

init
{
    byte i;

    atomic {
        for (i : 0 .. 7) {
            seen[LINE(0, 0, 0) + i] = MASK; /* at rest: all ones */
            seen[LINE(1, 0, 0) + i] = MASK
        }
        run rank_0();
        run rank_1();
        run rank_2()
    }
}
