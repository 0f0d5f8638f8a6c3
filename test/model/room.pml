/* Room for a message: lib/transport/cma/room.c, and who uses it: lib/exec/host/run.c (open_rooms),
 * lib/exec/host/cma_step.c, lib/core/lifetime.c (rd_comm_cancel).
 *
 * Rank 0 gives room in one of two buffers, in turns, and waits for the line. Rank 1 waits for the room, and has the
 * kernel write two words there, which looks for itself whether there is room; then it posts the line. At any time rank
 * 0's call may fail: it takes the room back, and its user writes other data. Rank 1 may be stopped at any time, except
 * in the kernel, and goes on at any time; who has stopped was switched out, so its stores are seen. A copy that the
 * kernel has begun ends. Operations count modulo 4. State: the room, the mark, the line and the words as they are seen
 * and as they are held back, and where each thread stands.
 *
 * Checked for ever: what has been put is right when the line is there; nothing is written into a buffer that the user
 * has back; somebody can always move, and after the failure both come to an end, however long rank 1 is stopped.
 *
 * BUG=1  the number is stored without a release
 * BUG=2  the sender's mark is not fenced before the kernel looks
 * BUG=3  the empty room is not fenced before the look for the mark
 * BUG=4  the sender looks whether there is room, and the kernel does not
 * BUG=5  the mark is taken away without a release
 * BUG=6  the line is posted before the message has been put
 * BUG=7  who takes the room back waits for a sender that is stopped */
#ifndef BUG
#define BUG 0
#endif

#define MASK 3  /* of operations */
#define OTHER 9 /* what the user writes when he has his buffer back */

/* Writers: 0 is rank 0, 1 is rank 1. */
#define ADDRESS 0
#define BYTES 1
#define NUMBER 2
#define PUT(w) (3 + (w))   /* by rank 1, of four words: two in each buffer */
#define WRITER 7
#define LINE 8
#define WORD(w) (9 + (w))  /* the same by rank 0 */
#define STORES 13
#define PLACE(s) ((s) >= 9 -> (s) - 6 : (s))
#define OWN(w) ((w) == 0 -> 7 | 15 << 9 : 63 << 3)
#define PLACES 9
#include "memory.pml"

bool failed, stopped, in_kernel, over;
bool theirs[2]; /* the buffer is the user's */

/* The user of rank 0 has a buffer back. */
inline hand_back(buffer)
{
    d_step {
        assert((holding & (15 << 3)) == 0);
        theirs[buffer] = true;
        hold(WORD(2 * buffer), OTHER);
        hold(WORD(2 * buffer + 1), OTHER)
    }
}

inline open_room(buffer, k)
{
    released(0);
    d_step {
        theirs[buffer] = false;
        hold(ADDRESS, buffer);
        hold(BYTES, 1)
    }
    BUG == 1 || released(0);
    store(NUMBER, k)
}

/* close_room */
inline take_back()
{
    store(BYTES, 0);
    BUG == 3 || released(0);
    do
    :: !seen[WRITER] -> break
    :: BUG != 7 && seen[WRITER] && stopped -> break /* may_copy */
    od
}

active proctype receiver()
{
    byte k;

    do
    ::  k = (k + 1) & MASK;
        open_room(k & 1, k);
        if
        :: seen[LINE] == k ->
            assert(seen[PUT(2 * (k & 1))] == k && seen[PUT(2 * (k & 1) + 1)] == k);
            hand_back(k & 1)
        :: failed -> break
        fi
    od;
    take_back();
    hand_back(0);
    hand_back(1);
    over = true
}

active proctype failure()
{
end:
    failed = true
}

active proctype stops()
{
end:
    do
    :: atomic { !stopped && !in_kernel && released(1) -> stopped = true }
    :: stopped -> stopped = false
    :: failed -> break /* or it stays stopped */
    od;
    timeout -> assert(over);
    stopped = false
}

inline copy(w)
{
    d_step {
        assert(!theirs[buffer]);
        hold(PUT(2 * buffer + (w)), k)
    }
}

inline put()
{
    bytes = seen[BYTES];
    if
    :: bytes ->
        store(WRITER, 1);
        BUG == 2 || released(1);
        d_step {
            in_kernel = true;
            buffer = seen[ADDRESS];
            bytes = (BUG == 4 -> 1 : seen[BYTES])
        }
        if
        :: bytes ->
            copy(0);
            copy(1)
        :: else
        fi;
        in_kernel = false;
        BUG == 5 || released(1);
        store(WRITER, 0)
    :: else
    fi
}

active proctype sender() provided (!stopped)
{
    byte k = 1, buffer;
    byte bytes;

    do
    ::  if
        :: seen[NUMBER] == k
        :: failed -> break
        fi;
        if
        :: BUG == 6 -> store(LINE, k)
        :: else
        fi;
        put();
        if
        :: !bytes -> break /* the room was taken back, so there is nobody who would read the line */
        :: else
        fi;
        if
        :: BUG != 6 ->
            released(1);
            store(LINE, k)
        :: else
        fi;
        buffer = 0;
        bytes = 0;
        k = (k + 1) & MASK
    od
}
