/* The record of a process: lib/monitor/seat.c writes it, and readers that it does not know (read.c) look at it at any
 * moment, also when it was killed in the middle of a call.
 *
 * The writer makes calls of a track that repeat the one before them or begin another run, and now and then a call of
 * another track, of which the ring holds an event, too. The ring has two places. An event is three words here: its stamp
 * (the index plus one, and a version), its first line (the number of the run's first call; of the other track 0) and its
 * second one (calls of the run that is over, after the first). A board is three: calls that have begun, the event of the
 * run that goes on, and the bytes of all runs before. Calls of a run have as many bytes as its event's index plus one.
 * State: these words as they are seen and as they are held back, what was true of each event and each call, and what the
 * reader has read so far. Where the writer is killed its words stay as they are, and the reader has seen them so.
 *
 * Checked whenever the reader takes something for good: an event is whole, and the one of that index; its number of
 * repetitions is none yet, or right; and the calls and bytes of a board are those of one moment.
 *
 * BUG=1  no fence behind the stamp that says "being written"
 * BUG=2  the stamp of the whole event is stored without release
 * BUG=3  the reader does not look at the stamp again
 * BUG=4  a run begins while the board still has the event of the one before
 * BUG=5  the event of a new run is put on the board without release
 * BUG=6  the number of repetitions is written into whatever event has the place by now
 * BUG=7  the reader does not compare the index of an event
 * BUG=8  the reader does not read the board twice
 */
#ifndef BUG
#define BUG 0
#endif

#define ACTIONS 5 /* of the writer: events or repetitions */
#define MOST 8

#define STAMP(i) ((i) & 1)
#define FIRST(i) (2 + ((i) & 1))
#define REPEATS(i) (4 + ((i) & 1))
#define BEGUN 6
#define ENTRY 7
#define BYTES 8
#define STORES 9
#define PLACE(s) (s)
#define OWN(w) 511
#include "memory.pml"

#define WRITING 1
#define WHOLE 2
#define stamp(index, version) (((index) + 1) << 3 | (version))

byte first_of[MOST]; /* of each event: the number of its first call */
byte calls_of[MOST]; /* and how many calls its run has had when it was over */
byte bytes_of[MOST]; /* of all calls up to each number */
byte run_of[MOST];   /* the event of the run that each number is of, plus one */

/* Seen at once by all, with what was stored before. */
inline exchange(s, value)
{
    released(0);
    seen[PLACE(s)] = value
}

/* write_event */
inline write_event(number)
{
    index = next;
    next++;
    first_of[index] = number;
    if
    :: BUG == 1 -> store(STAMP(index), stamp(index, WRITING))
    :: else -> exchange(STAMP(index), stamp(index, WRITING))
    fi;
    store(FIRST(index), number);
    store(REPEATS(index), 0);
    BUG == 2 || released(0);
    store(STAMP(index), stamp(index, WHOLE));
    released(0) /* as the next event's stamp is an exchange, nothing is in the way of it for long */
}

/* end_run: open_event, close_event. The stamp of what was never closed, or is another one's by now, is left alone. */
inline end_run()
{
    if
    :: now && begun > first_of[now - 1] ->
        calls_of[now - 1] = begun + 1 - first_of[now - 1];
        if
        :: BUG == 6 || seen[STAMP(now - 1)] == stamp(now - 1, WHOLE) ->
            if
            :: BUG != 6 -> exchange(STAMP(now - 1), stamp(now - 1, WHOLE + 1))
            :: else
            fi;
            store(REPEATS(now - 1), begun - first_of[now - 1]);
            released(0);
            if
            :: BUG != 6 -> store(STAMP(now - 1), stamp(now - 1, WHOLE + 2))
            :: else
            fi
        :: else
        fi
    :: else
    fi
}

inline count_call()
{
    d_step {
        begun++;
        bytes_of[begun] = bytes_of[begun - 1] + now;
        run_of[begun] = now
    }
}

/* begin_run */
inline begin_run()
{
    BUG == 4 || BUG == 5 || released(0);
    if
    :: BUG != 4 ->
        store(ENTRY, 0);
        released(0)
    :: else
    fi;
    store(BYTES, bytes_of[begun]);
    released(0);
    now = index + 1;
    count_call();
    store(BEGUN, begun);
    BUG == 5 || released(0);
    store(ENTRY, now)
}

active proctype writer()
{
    byte next, index, now, begun, actions; /* now: the event of the run that goes on, plus one */

    do
    :: actions < ACTIONS ->
        actions++;
        if
        :: now -> /* repeats the call before it */
            count_call();
            store(BEGUN, begun)
        ::  end_run();
            write_event(begun + 1);
            begin_run()
        :: write_event(0) /* of another track */
        fi
    :: else -> break
    od
}

/* rd_reader_event: what it gives is right. */
inline read_event(i)
{
    before = seen[STAMP(i)];
    if
    :: (before & 7) != WRITING && before != 0 && (BUG == 7 || before >> 3 == (i) + 1) ->
        first = seen[FIRST(i)];
        repeats = seen[REPEATS(i)];
        if
        :: BUG == 3 || seen[STAMP(i)] == before ->
            assert(first == first_of[i]);
            assert(repeats == 0 || repeats + 1 == calls_of[i])
        :: else
        fi
    :: else
    fi
}

/* copy_comm, and what is made of it: the bytes of all calls that have begun. */
inline read_board()
{
    before = seen[ENTRY];
    first = seen[BYTES];
    begun = seen[BEGUN];
    entry = seen[ENTRY];
    bytes = seen[BYTES];
    if
    :: entry && (BUG == 8 || (entry == before && bytes == first)) ->
        assert(run_of[begun] == entry);
        assert(bytes + (begun + 1 - first_of[entry - 1]) * entry == bytes_of[begun])
    :: else
    fi;
    d_step {
        begun = 0;
        entry = 0;
        bytes = 0
    }
}

active proctype reader()
{
    byte before, first, repeats, begun, entry, bytes;

end:
    do
    :: read_event(0)
    :: read_event(1)
    :: read_event(2)
    :: read_event(3)
    :: read_board()
    od
}
