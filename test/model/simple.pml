/* Simple with credits: slots of plain data, then the count of messages: lib/transport/shm/slots.h, as lib/exec/host/run.c (step_slots)
 * uses it.
 *
 * Rank 0 sends to rank 1, which adds to each message in the slot where it lies, straight into the slot for rank 2,
 * publishes that and gives its own slot back last. A connection has two slots of two words; counts are modulo 4 here.
 * A slot is written plainly or past the caches (lib/exec/host/nt_store.h); in the second case a release does not wait for what
 * was written, and a fence must. State: words and counts as they are seen and as they are held back, the counts of both
 * ends of both connections, and whether each slot still holds something that was not read.
 *
 * Checked for ever: each message arrives once, in order, with the right sum; no slot is written before its last message
 * was read; somebody can always move.
 *
 * BUG=1  the count is stored without release
 * BUG=2  the slot is loaded before the count: no acquire
 * BUG=3  the slot is given back before it is read: no release there
 * BUG=4  no fence behind stores past the caches
 * BUG=5  one slot too many is taken for free */
#ifndef BUG
#define BUG 0
#endif

#define SLOTS 2
#define MASK 3 /* of counts */

/* Connection c: from rank c to rank c + 1. */
#define WORD(c, n, w) ((c) * 6 + 2 * ((n) & 1) + (w))
#define TAIL(c) ((c) * 6 + 4)
#define HEAD(c) ((c) * 6 + 5)
#define STORES 12
#define PLACE(s) (s)
#define OWN(w) ((w) == 0 -> 31 : ((w) == 1 -> 31 << 6 | 1 << 5 : 1 << 11))
#include "memory.pml"

int unread; /* a bit for each slot */

#define SLOT(c, n) ((c) * SLOTS + ((n) & 1))

/* rd_slot_may_send */
inline wait_for_room(c)
{
    do
    :: ((sent - credit) & MASK) < SLOTS + (BUG == 5) -> break
    :: ((sent - credit) & MASK) >= SLOTS + (BUG == 5) && credit != seen[HEAD(c)] -> credit = seen[HEAD(c)]
    od
}

inline write_word(c, w, value)
{
    d_step {
        assert(w > 0 || !(unread & 1 << SLOT(c, sent)));
        unread = unread | 1 << SLOT(c, sent)
    }
    store(WORD(c, sent, w), value)
}

/* rd_slot_publish */
inline publish(c)
{
    if
    :: BUG == 1 || BUG == 4
    :: released(c)
    fi;
    sent = (sent + 1) & MASK;
    store(TAIL(c), sent)
}

/* rd_slot_arrived */
inline wait_for_message(c)
{
    do
    :: known != received -> break
    :: known == received && seen[TAIL(c)] != known -> known = seen[TAIL(c)]
    od
}

/* rd_slot_return */
inline give_back(c)
{
    released((c) + 1);
    received = (received + 1) & MASK;
    store(HEAD(c), received)
}

inline mark_read(c)
{
    unread = unread & ~(1 << SLOT(c, received))
}

active proctype rank_0()
{
    byte sent, credit;

    do
    ::  wait_for_room(0);
        write_word(0, 0, sent);
        write_word(0, 1, sent);
        publish(0)
    od
}

active proctype rank_1()
{
    byte sent, credit, received, known, value;

    do
    ::  wait_for_message(0);
        wait_for_room(1);
        value = seen[WORD(0, received, 0)];
        write_word(1, 0, (value + 1) & MASK);
        d_step {
            value = seen[WORD(0, received, 1)];
            mark_read(0)
        }
        write_word(1, 1, (value + 1) & MASK);
        value = 0;
        publish(1);
        give_back(0)
    od
}

active proctype rank_2()
{
    byte received, known, first, second;

    do
    ::  if
        :: BUG == 2 -> first = seen[WORD(1, received, 0)]
        :: else
        fi;
        wait_for_message(1);
        if
        :: BUG == 3 -> give_back(1)
        :: else
        fi;
        if
        :: BUG == 2
        :: else -> first = seen[WORD(1, received + (BUG == 3 -> 1 : 0), 0)]
        fi;
        d_step {
            second = seen[WORD(1, received + (BUG == 3 -> 1 : 0), 1)];
            mark_read(1)
        }
        assert(BUG == 3 || first == ((received + 1) & MASK));
        assert(BUG == 3 || second == ((received + 1) & MASK));
        d_step {
            first = 0;
            second = 0
        }
        if
        :: BUG == 3
        :: else -> give_back(1)
        fi
    od
}
