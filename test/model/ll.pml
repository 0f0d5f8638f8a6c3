/* Lines of LL with credits: lib/transport/shm/ll.h, as lib/exec/host/run.c (step_lines) uses it.
 *
 * Rank 0 sends to rank 1, which adds to each message and sends it on to rank 2: a fused step, which looks for room
 * first, then for the message, sends, and gives credits back last. Messages take 1, 2, 2, 1, 2, 2... lines, so they
 * begin everywhere in a ring of four. A line is two words, data and sequence; numbers of lines are modulo 8 here and
 * modulo 2^32 in the library, where the ring has 256. The sequence's other half, the signature of the call, is left out:
 * these ranks call the same. State: the lines and credits as they are seen and as they are held back, the counts
 * of both ends of both connections, and whether each line still holds something that was not read.
 *
 * Checked for ever: each message arrives once, in order, with the right sum; no line is written before its last
 * message was read; somebody can always move.
 *
 * BUG=1  the sequence is stored without release
 * BUG=2  the data is loaded before the sequence: no acquire
 * BUG=3  credits go back before the data is read: no release there
 * BUG=4  one line too many is taken for free
 * BUG=5  as many credits are held back as a message may be long, and one more: the sender starves */
#ifndef BUG
#define BUG 0
#endif

#define LINES 4
#define MASK 7 /* of numbers */
#if BUG == 5
#define QUARTER 3 /* credits are held back up to so many */
#else
#define QUARTER 1
#endif

/* Connection c: from rank c to rank c + 1. */
#define DATA(c, l) ((c) * 9 + 2 * (l))
#define SEQUENCE(c, l) ((c) * 9 + 2 * (l) + 1)
#define HEAD(c) ((c) * 9 + 8)
#define STORES 18
#define PLACE(s) (s)
#define OWN(w) ((w) == 0 -> 255 : ((w) == 1 -> 255 << 9 | 1 << 8 : 1 << 17))
#include "memory.pml"

int unread; /* a bit for each line */

#define LINE(c, n) ((c) * LINES + ((n) & (LINES - 1)))
#define value_of(n) ((n) & MASK)
#define ahead ((sent + lines - credit) & MASK)

/* How long the next message is, every rank knows by the call. */
inline next_message()
{
    d_step {
        turn = (turn + 1) % 3;
        lines = (turn == 0 -> 1 : 2)
    }
}

/* rd_ll_may_send */
inline wait_for_room(c)
{
    do
    :: ahead <= LINES + (BUG == 4) -> break
    :: ahead > LINES + (BUG == 4) && credit != seen[HEAD(c)] -> credit = seen[HEAD(c)]
    od
}

/* rd_ll_send */
inline send_line(c, number, value)
{
    d_step {
        assert(!(unread & 1 << LINE(c, number)));
        unread = unread | 1 << LINE(c, number)
    }
    store(DATA(c, (number) & 3), value);
    BUG == 1 || released(c);
    store(SEQUENCE(c, (number) & 3), ((number) + 1) & MASK)
}

inline load_data(c, number, value)
{
    d_step {
        value = seen[DATA(c, (number) & 3)];
        unread = unread & ~(1 << LINE(c, number))
    }
}

/* rd_ll_peek, one line */
inline wait_for_line(c, number, value)
{
    if
    :: BUG == 2 -> load_data(c, number, value)
    :: else
    fi;
    seen[SEQUENCE(c, (number) & 3)] == (((number) + 1) & MASK);
    if
    :: BUG == 2 || BUG == 3
    :: else -> load_data(c, number, value)
    fi
}

/* rd_ll_consume */
inline consume(c)
{
    d_step {
        received = (received + lines) & MASK;
        kept = kept + lines
    }
    if
    :: kept > QUARTER ->
        released((c) + 1);
        store(HEAD(c), received);
        kept = 0
    :: else
    fi
}

active proctype rank_0()
{
    byte sent, credit, turn, lines = 1;

    do
    ::  wait_for_room(0);
        send_line(0, sent, value_of(sent));
        if
        :: lines == 2 -> send_line(0, sent + 1, value_of(sent + 1))
        :: else
        fi;
        sent = (sent + lines) & MASK;
        next_message()
    od
}

active proctype rank_1()
{
    byte sent, credit, received, kept, turn, lines = 1, first, second;

    do
    ::  wait_for_room(1);
        wait_for_line(0, received, first);
        if
        :: lines == 2 -> wait_for_line(0, received + 1, second)
        :: else
        fi;
        if
        :: BUG == 3 ->
            consume(0);
            load_data(0, received - lines, first);
            if
            :: lines == 2 -> load_data(0, received - 1, second)
            :: else
            fi
        :: else
        fi;
        send_line(1, sent, value_of(first + 1));
        if
        :: lines == 2 -> send_line(1, sent + 1, value_of(second + 1))
        :: else
        fi;
        d_step {
            sent = (sent + lines) & MASK;
            first = 0;
            second = 0
        }
        if
        :: BUG != 3 -> consume(0)
        :: else
        fi;
        next_message()
    od
}

active proctype rank_2()
{
    byte received, kept, turn, lines = 1, value;

    do
    ::  wait_for_line(1, received, value);
        assert(BUG == 3 || value == value_of(received + 1));
        if
        :: lines == 2 ->
            wait_for_line(1, received + 1, value);
            assert(BUG == 3 || value == value_of(received + 2))
        :: else
        fi;
        consume(1);
        value = 0;
        next_message()
    od
}
