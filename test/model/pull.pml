/* The zero-copy post: lib/transport/cma/cma.c, lib/exec/host/cma_step.c, and how what was posted is taken back: lib/core/lifetime.c
 * (rd_comm_cancel), lib/core/comm.c (rondo_comm_revoke), lib/transport/conns.c (rd_conns_wait_unread).
 *
 * Rank 0 posts the address of its user's buffer to ranks 1 and 2 (one line of LL each: see ll.pml), waits until both
 * have given the credit, and hands the buffer back to its user, who writes other data there. A reader reads two words,
 * looks whether the sender has failed, and only then takes them. At any time another thread of rank 0 may revoke the
 * communicator: rank 0's call is inside then, or it has submitted a request and is on its way to wait for it. Ranks are
 * processes, or threads of one process: there the user may free what he has back, and nobody may touch it any more.
 * Operations count modulo 4. State: posts, credits, marks and words as they are seen and as they are held back, and
 * where each thread stands.
 *
 * Checked for ever: a reader that takes data has that of its operation; none reads what its user has back, where ranks
 * are threads; somebody can always move, and after a revocation all come to an end.
 *
 * BUG=1  a reader looks for a failure before it has read, and not after
 * BUG=2  the mark of a failure is not fenced before the user's next store
 * BUG=3  no barrier before the look whether somebody reads
 * BUG=4  who finds the mark there does not wait until it has been acted on
 * BUG=5  the credit is given before the buffer is read */
#ifndef BUG
#define BUG 0
#endif

#define MASK 3  /* of operations */
#define OTHER 9 /* what the user writes when he has his buffer back */

/* Threads: 0 rank 0's user, 1 and 2 the readers, 3 the one that revokes, of rank 0, too. */
#define WORD(w) (w)
#define POST(r) (1 + (r))
#define CREDIT(r) (3 + (r))
#define READING(r) (5 + (r))
#define FAILED 8
#define STORES 10
#define PLACE(s) ((s) == 9 -> FAILED : (s))
#define OWN(w) ((w) == 0 -> 15 | 1 << 8 : ((w) == 3 -> 1 << 9 : 1 << CREDIT(w) | 1 << READING(w)))
#include "memory.pml"

bool threads; /* of one process, the ranks are */
bool stop, notice, inside;
bool theirs;    /* the buffer is the user's, for good */
byte giving_up; /* 1: it is under way, 2: done */

/* rd_conns_wait_unread */
inline wait_unread(r, mark)
{
    mark = seen[READING(r)];
    !(mark & 1) || seen[READING(r)] != mark;
    mark = 0
}

/* rd_comm_cancel */
inline cancel(w, pair, mark)
{
    if
    :: BUG == 4 && seen[FAILED]
    :: BUG != 4 && giving_up -> giving_up == 2
    :: atomic { (BUG == 4 -> !seen[FAILED] : !giving_up) -> giving_up = 1 } ->
        notice = true;
        released(w);
        store(pair, 1);
        BUG == 2 || released(w);
        if
        :: threads ->
            released(w);
            BUG == 3 || released(1);
            BUG == 3 || released(2);
            wait_unread(1, mark);
            wait_unread(2, mark)
        :: else
        fi;
        giving_up = 2
    fi
}

active proctype user()
{
    byte k, mark;

    if
    :: threads = true
    :: true
    fi;
    do
    ::  k = (k + 1) & MASK;
        store(WORD(0), k);
        store(WORD(1), k);
        inside = true;
        if
        :: stop -> break
        :: else
        fi;
        released(0);
        store(POST(1), k);
        released(0);
        store(POST(2), k);
        if
        :: true /* a blocking call */
        :: true -> /* a request */
            inside = false;
            inside = true
        fi;
        if
        :: seen[CREDIT(1)] == k && seen[CREDIT(2)] == k -> inside = false /* rd_pull_settled */
        :: stop -> break
        fi
    od;
    cancel(0, FAILED, mark);
    inside = false;
    theirs = true;
    store(WORD(0), OTHER);
    store(WORD(1), OTHER)
}

active proctype revoke()
{
    byte mark;

    if
    :: true -> goto end
    :: true
    fi;
    stop = true;
    notice = true;
    !inside;
    cancel(3, 9, mark);
end:
}

inline read_word(w, value)
{
    d_step {
        assert(!(threads && theirs));
        value = seen[WORD(w)]
    }
}

inline give_credit()
{
    released(r);
    store(CREDIT(r), k)
}

proctype reader(byte r)
{
    byte k = 1, mark, first, second;
    bool gone;

    do
    ::  if
        :: seen[POST(r)] == k
        :: notice -> break
        fi;
        if
        :: BUG == 5 -> give_credit()
        :: else
        fi;
        if
        :: threads ->
            mark = (mark + 1) & MASK;
            store(READING(r), mark)
        :: else
        fi;
        if
        :: (threads || BUG == 1) && seen[FAILED] -> gone = true
        :: else ->
            read_word(0, first);
            read_word(1, second)
        fi;
        if
        :: threads ->
            mark = (mark + 1) & MASK;
            released(r);
            store(READING(r), mark)
        :: else
        fi;
        if
        :: gone || BUG != 1 && seen[FAILED] -> break /* check_senders */
        :: else
        fi;
        assert(first == k && second == k);
        first = 0;
        second = 0;
        if
        :: BUG == 5
        :: else -> give_credit()
        fi;
        k = (k + 1) & MASK
    od
}

init
{
    atomic {
        run reader(1);
        run reader(2)
    }
}
