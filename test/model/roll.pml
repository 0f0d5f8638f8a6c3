/* The survivors' agreement, rondo_comm_shrink with RONDO_SURVIVORS: lib/boot/agree_shrink.h, agree_shrink.c, agree_shrink_lead.c,
 * shrink.c.
 *
 * Three ranks are left, and two of them may die at any moment. The lowest one leads: it hears from each of the others
 * where it stands, or that it is gone; makes a list; hears from each how making that communicator went; says PREPARE,
 * hears READY, and says KEEP. When a leader dies, the next one takes over with what the others tell it. What a dead
 * rank has said may still come or not; so may what one has said who has kept a communicator: he has stopped listening,
 * and counts as gone. A failure without a death, which ends the roll call for all, is left out. State: the messages on
 * their way, who is gone, who has come to which list, and where each rank stands.
 *
 * Checked: nobody ever keeps another communicator than anybody else; all who live keep one.
 *
 * BUG=1  KEEP follows when all have made it, without PREPARE
 * BUG=2  a new leader that finds somebody READY says KEEP at once
 * BUG=3  who has kept it goes on listening, and says nothing
 * BUG=4  a leader that makes a list does not count on from the others' rounds */
#ifndef BUG
#define BUG 0
#endif

mtype = { LIST, PREPARE, KEEP };

#define OUTSIDE 0
#define FAILED 1
#define MADE 2
#define READY 3

byte dead, kept;     /* masks of ranks */
byte joined[8];      /* who makes the communicator of a list; none is tried twice */
byte group;          /* that somebody has kept: round and list; 0: none yet */
#define WAY(low, high) ((low) + (high) - 1)  /* 0 and 1, 0 and 2, 1 and 2 */
chan down[3] = [3] of { mtype, byte, byte }; /* round, list */
chan up[3] = [3] of { byte, byte };          /* round, standing */

#define bit_of(r) (1 << (r))
#define has(mask, r) ((mask) >> (r) & 1)
#if BUG == 3
#define gone dead
#else
#define gone (dead | kept)
#endif

inline keep()
{
    d_step {
        assert(group == 0 || group == (round << 3 | list));
        group = round << 3 | list;
        kept = kept | bit_of(me)
    }
}

inline make()
{
    joined[list] = joined[list] | bit_of(me);
    if
    :: joined[list] == list -> standing = MADE
    :: dead & list -> standing = FAILED
    fi;
    told = false
}

/* To all that have come and are not gone, one after the other. A leader is the lowest that lives. */
inline tell_one(what, r)
{
    if
    :: r > me && has(came & ~lost, r) -> down[WAY(me, r)] ! what, round, list
    :: else
    fi
}

inline tell(what)
{
    tell_one(what, 1);
    tell_one(what, 2)
}

#define stands(r, least)                                                                                               \
    ((r) == me && standing >= (least) || (r) != me && their_round[r] == round && their_standing[r] >= (least))
#define all_stand(least)                                                                                               \
    ((!has(here, 0) || stands(0, least)) && (!has(here, 1) || stands(1, least)) && (!has(here, 2) || stands(2, least)))
#define one_stands(least)                                                                                              \
    (has(here, 0) && stands(0, least) || has(here, 1) && stands(1, least) || has(here, 2) && stands(2, least))
#define here (list & ~lost)
#define gathered (!listed && (came | lost) == 7)

inline highest(r)
{
    if
    :: BUG != 4 && their_round[r] > round -> round = their_round[r]
    :: else
    fi
}

/* rd_agree_shrink_lead: until there is a list or one is kept */
inline lead()
{
    do
    :: gathered && standing >= MADE && one_stands(READY) -> /* under a leader that is gone */
        standing = READY;
        listed = true;
        if
        :: BUG == 2 ->
            tell(KEEP);
            keep();
            break
        :: else -> tell(PREPARE)
        fi
    :: gathered && !(standing >= MADE && one_stands(READY)) ->
        d_step {
            highest(0);
            highest(1);
            highest(2);
            round = round + 1;
            list = came & ~lost;
            standing = OUTSIDE;
            listed = true
        }
        tell(LIST);
        break
    :: listed && standing == READY && all_stand(READY) ->
        tell(KEEP);
        keep();
        break
    :: listed && standing != READY && (list & lost) -> listed = false
    :: listed && standing == MADE && !(list & lost) && all_stand(MADE) ->
        standing = READY;
        if
        :: BUG == 1 ->
            tell(KEEP);
            keep();
            break
        :: else -> tell(PREPARE)
        fi
    :: atomic {
        me < 1 && nempty(up[WAY(me, 1)]) ->
        up[WAY(me, 1)] ? their_round[1], their_standing[1];
        came = came | 2
    }
    :: atomic {
        me < 2 && nempty(up[WAY(me, 2)]) ->
        up[WAY(me, 2)] ? their_round[2], their_standing[2];
        came = came | 4
    }
    :: gone & ~lost & ~bit_of(me) -> lost = lost | gone & ~bit_of(me)
    od
}

proctype rank(byte me)
{
    byte leader, round, list, standing, came = bit_of(me), lost = bit_of(me) - 1, their_round[3], their_standing[3];
    byte new_round, new_list;
    mtype what;
    bool told, listed;

    {
        do
        :: has(kept, me) -> break
        :: leader == me && !has(kept, me) ->
            lead();
            if
            :: has(kept, me) -> break
            :: else -> make()
            fi
        :: leader != me && has(gone, leader) ->
            d_step {
                leader++;
                told = false
            }
        :: leader != me && !told && !has(gone, leader) ->
            up[WAY(leader, me)] ! round, standing;
            told = true
        :: leader != me && told ->
            if
            :: atomic {
                down[WAY(leader, me)] ? what, new_round, new_list;
                listed = what == LIST && new_round > round;
                if
                :: listed ->
                    round = new_round;
                    list = new_list
                :: what == PREPARE && new_round == round && standing >= MADE ->
                    standing = READY;
                    told = false
                :: what == KEEP && new_round == round && standing >= MADE -> keep()
                :: else
                fi;
                what = 0;
                new_round = 0;
                new_list = 0
            };
                if
                :: listed ->
                    listed = false;
                    make()
                :: else
                fi
            :: has(gone, leader)
            fi
        od
    } unless {
        has(dead, me)
    }
}

active proctype deaths()
{
    byte n;

    do
    :: n < 2 ->
        if
        :: dead = dead | 1
        :: dead = dead | 2
        :: dead = dead | 4
        :: true
        fi;
        n++
    :: else -> break
    od
}

init
{
    atomic {
        run rank(0);
        run rank(1);
        run rank(2)
    }
}
