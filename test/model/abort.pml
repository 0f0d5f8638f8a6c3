/* An abort from another thread: lib/core/lifetime.h, lib/core/lifetime.c, lib/core/comm.c (rondo_comm_abort, _revoke, _destroy,
 * _get_error), lib/core/request.c, the stop word of lib/base/wait.c, and lib/transport/liveness.c, which sets it as well.
 *
 * One thread makes calls: operations, groups that have to do with another communicator, too, requests, and at last
 * perhaps rondo_comm_destroy. A second one aborts the communicator at any time, and does afterwards what the other
 * communicator waits for; a third one aborts as well, revokes, or asks for the error; the watch may hear of a death.
 * The mark that a thread is inside is a plain store, held back until somebody issues a barrier for it. Later on the
 * communicator's struct is given up by the library, in which only a request's own reference keeps it. State: the words
 * of the struct, whether the rooms are up, the references, and where each thread stands.
 *
 * Checked: nobody uses rooms that are down, nor a request a struct that is gone; the rooms are down when an abort
 * returns; all threads come to an end.
 *
 * BUG=1  no barrier before the look whether somebody is inside
 * BUG=2  who ends the communicator does not wait for those who ask
 * BUG=3  a group stays inside the aborted communicator until the other one is done
 * BUG=4  who finds the door shut keeps his mark while he waits
 * BUG=5  the second one to shut the door does not wait until the rooms are down
 * BUG=6  a request holds no reference */
#ifndef BUG
#define BUG 0
#endif

#define INSIDE 0
#define STORES 1
#define PLACE(s) (s)
#define OWN(w) 1 /* the caller's */
#include "memory.pml"

bool stop, closed, gone, dead; /* dead: what rd_comm_valid sees */
byte askers;
bool rooms = true, watched = true, other_done, calling;
byte references = 1, aborting = 1;

#define use_rooms() assert(rooms)

/* rd_health_fail */
inline fail()
{
    if
    :: !stop ->
        use_rooms();
        stop = true
    :: else
    fi
}

/* rd_comm_close, end, take_down and rd_comm_closed */
inline close_and_end()
{
    if
    :: atomic { closed -> skip };
        BUG == 5 || gone
    :: atomic { !closed -> closed = true };
        !stop || BUG == 1 || released(0);
        !seen[INSIDE];
        BUG == 2 || askers == 0;
        dead = true;
        use_rooms();
        watched = false;
        rooms = false;
        gone = true
    fi
}

inline ask(granted)
{
    askers++;
    granted = !closed;
    if
    :: !granted -> askers--
    :: else
    fi
}

inline abort_it(granted)
{
    if
    :: dead
    :: else ->
        ask(granted);
        if
        :: granted ->
            fail();
            askers--
        :: else
        fi;
        close_and_end();
        assert(!rooms)
    fi
}

/* rd_comm_enter */
inline enter(failed)
{
    store(INSIDE, 1);
    failed = false;
    if
    :: !stop
    :: else ->
        failed = true;
        if
        :: closed ->
            if
            :: BUG == 4
            :: else ->
                released(0);
                store(INSIDE, 0)
            fi;
            gone
        :: else
        fi
    fi
}

/* rd_comm_leave */
inline leave(failed)
{
    if
    :: failed && stop && !gone -> use_rooms()
    :: else
    fi;
    released(0);
    store(INSIDE, 0)
}

/* The peers do their part, or never do. */
inline wait_for_peers(failed)
{
    use_rooms();
    if
    :: true
    :: true ->
        stop;
        failed = true
    fi;
    use_rooms()
}

/* A group or a request over this communicator and another one: take_group, finish, release. */
inline finish_group(failed)
{
    assert(references > 0);
    enter(failed);
    assert(references > 0);
    if
    :: gone -> leave(failed)
    :: else ->
        if
        :: failed
        :: else -> wait_for_peers(failed)
        fi;
        if
        :: BUG == 3 -> other_done
        :: else
        fi;
        leave(failed)
    fi;
    assert(references > 0);
    other_done
}

active proctype caller()
{
    bool failed;

    do
    :: dead || failed -> break
    :: else ->
        if
        :: calling = true; /* an operation */
            enter(failed);
            if
            :: failed
            :: else -> wait_for_peers(failed)
            fi;
            leave(failed);
            calling = false
        :: references = references + (BUG != 6); /* a group */
            finish_group(failed);
            references = references - (BUG != 6)
        :: references = references + (BUG != 6); /* a request */
            enter(failed);
            if
            :: failed || gone
            :: else -> use_rooms()
            fi;
            leave(failed);
            finish_group(failed);
            references = references - (BUG != 6)
        :: calling = true; /* destroy */
            enter(failed);
            if
            :: failed
            :: else -> wait_for_peers(failed)
            fi;
            leave(failed);
            close_and_end();
            assert(!rooms);
            calling = false;
            break
        fi
    od
}

active proctype aborter()
{
    bool granted;

    abort_it(granted);
    aborting--;
    other_done = true
}

active proctype another()
{
    bool granted;

    aborting++;
    if
    :: abort_it(granted)
    :: dead
    :: !dead -> /* revoke */
        ask(granted);
        if
        :: granted ->
            fail();
            released(0);
            !seen[INSIDE];
            use_rooms(); /* rd_comm_cancel */
            askers--
        :: else
        fi
    :: !dead -> /* get_error */
        ask(granted);
        if
        :: granted ->
            use_rooms();
            askers--
        :: else
        fi
    fi;
    aborting--
}

active proctype watch()
{
    if
    :: atomic { watched -> stop = true }; /* under the watch's lock */
    :: true
    fi
}

/* Other communicators have been ended since, so many that this one is not kept any more. */
active proctype others()
{
    atomic { gone && !calling && aborting == 0 -> references-- }
}
