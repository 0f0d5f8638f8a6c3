/* The survivors' agreement in a shrink with a list: lib/core/split.c, rd_boot_id_derive and serve_derived in lib/boot/boot.c,
 * lib/boot/rendezvous.c and lib/boot/join.c.
 *
 * Of four ranks one is dead; the other three shrink, and one of them may die at any moment. A call has a list of the
 * ranks that stay, and an id made of that list and of how often the caller has met others by it so far. The first of
 * the list serves the id, in place of what it served before; the others dial, join, hear that all have come, and
 * exchange something; who has heard from all has met them, and uses the new communicator until it fails. Once, a rank
 * that has met the others lacks memory for the rest, and the communicator fails for all. A rank may know of the second
 * death before its first call, or learn it from a call that failed; a call fails, too, when it is not let in for long:
 * at any time if its list has a dead rank, and else once. Then it calls again. State: what each rank serves, who has
 * joined, exchanged and heard from all, and where each rank stands; lists are masks, ids are modulo 4 for each list.
 *
 * Checked: whenever nothing moves any more, all ranks that live use the communicator of the same id, and nobody dead
 * is in it; nobody waits for ever.
 *
 * BUG=1  ids count all calls of a rank, whatever their lists
 * BUG=2  ids count the calls of a rank that failed, too
 * BUG=3  a rank that serves an id goes on with that one when it should serve the next
 * BUG=4  who has joined does not see that somebody has died
 * BUG=5  ids count the communicators that a rank has made, not how often it has met the others */
#ifndef BUG
#define BUG 0
#endif

byte dead; /* masks of ranks */
byte serving[3], turn[3], joined[3], exchanged[3];
byte heard[3]; /* from all who exchange with them at this server */
byte uses[3]; /* the id of the communicator that a rank has, plus one */
byte lost;    /* likewise, of the one that a rank has not made for want of memory */

#define bit_of(r) (1 << (r))
#define first_of(list) ((list) & 1 -> 0 : ((list) & 2 -> 1 : 2))
#define id_of(list, count) ((list) | ((count) & 3) << 3)

/* Whoever has joined the rendezvous before is told that nothing comes of it. */
inline serve()
{
    d_step {
        if
        :: BUG == 3 && serving[me]
        :: else ->
            serving[me] = id;
            turn[me] = (turn[me] + 1) & 3;
            joined[me] = 0;
            exchanged[me] = 0
        fi
    }
}

#define of_mine (serving[server] == id && turn[server] == mine)
#define somebody_died (dead & list)

inline meet()
{
    met = false;
    if
    :: me == server -> serve()
    :: else
    fi;
    if
    :: atomic {
        serving[server] == id && !(dead & bit_of(server)) ->
        mine = turn[server];
        heard[server] = heard[server] & ~bit_of(me);
        joined[server] = joined[server] | bit_of(me)
    };
        if
        :: atomic {
            of_mine && joined[server] == list ->
            exchanged[server] = exchanged[server] | bit_of(me);
            if
            :: exchanged[server] == list -> heard[server] = heard[server] | list
            :: else
            fi
        };
            if
            :: heard[server] & bit_of(me) -> met = true
            :: !(heard[server] & bit_of(me)) && !of_mine
            :: somebody_died && BUG != 4
            fi
        :: !of_mine
        :: somebody_died && BUG != 4
        fi
    :: dead & bit_of(server)
    :: serving[server] != id && somebody_died
    :: serving[server] != id && !gave_up -> gave_up = true
    fi
}

proctype survivor(byte me)
{
    byte list = 7, id, server, mine, count[8];
    bool met, lacks, gave_up;

    {
        if
        :: list = list & ~dead /* it knows by the watch */
        :: true
        fi;
        do
        ::  d_step {
                server = first_of(list);
                id = id_of(list, count[(BUG == 1 -> 0 : list)])
            }
            meet();
            if
            :: met && !lost ->
                lost = id + 1;
                lacks = true
            :: true
            fi;
            d_step {
                if
                :: met && !(lacks && BUG == 5) || BUG == 1 || BUG == 2 ->
                    count[(BUG == 1 -> 0 : list)] = (count[(BUG == 1 -> 0 : list)] + 1) & 3
                :: else
                fi
            }
            if
            :: met && !lacks ->
                uses[me] = id + 1;
end_using:      somebody_died || lost == uses[me];
                uses[me] = 0
            :: else
            fi;
            lacks = false;
            list = list & ~dead
        od
    } unless {
        dead & bit_of(me)
    }
}

active proctype second_death()
{
    if
    :: true
    :: dead = 1
    :: dead = 2
    :: dead = 4
    fi
}

#define agrees(a, b) (dead & (bit_of(a) | bit_of(b)) || uses[a] == uses[b])

active proctype judge()
{
    timeout;
    assert(agrees(0, 1) && agrees(1, 2) && agrees(0, 2));
    assert(dead & 1 || uses[0] && !((uses[0] - 1) & dead));
    assert(dead & 2 || uses[1] && !((uses[1] - 1) & dead))
}

init
{
    atomic {
        run survivor(0);
        run survivor(1);
        run survivor(2)
    }
}
