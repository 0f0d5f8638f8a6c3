/* A rank's board: memory of its own that all ranks of its node read. What goes to several peers is written once there,
 * where it would be stored into each peer's inbox.
 *
 *   board of a rank, behind the inboxes of its segment:
 *       | lines read, bytes read | flags of slots | lines | slots, page aligned |
 *
 * There are two rings, one for each protocol: board-ll has the lines of ll.h, each of which shows by itself that it has
 * come; board has slots of plain data, and a flag for each, stored with release behind the data.
 *
 * Lines and flags have the signature of their call in their upper half, as in ll.h.
 *
 * Nobody is told where a message lies. An operation by this protocol uses up as much of the ring of each rank, whatever
 * the rank writes, so all ring positions are functions of the operation and of how many went before (rd_board_plan_t).
 * A position counts lines, or bytes, since the communicator was made; a line's sequence and a slot's flag are numbers
 * that grow by one, so what an earlier round has left is never taken for the message.
 *
 * A writer may overwrite what every rank has read. Each rank says how far it has read in two counters on its own board,
 * one store each now and then, and a writer looks at them only when it has used up what they last said: short messages
 * cost no acknowledgement. All ranks run the same operations in the same order, and a rank never waits for room that
 * only a rank behind a later operation could give, because an operation (a pass) uses half of a ring at most. */
#ifndef RD_TRANSPORT_SHM_BOARD_H
#define RD_TRANSPORT_SHM_BOARD_H

#include "transport/shm/ll.h"

#define RD_BOARD_LINES 512u                   /* of the ring of lines */
#define RD_BOARD_BYTES ((size_t)1 << 20)      /* of the ring of slots */
#define RD_BOARD_SLOT_LEAST ((size_t)4 << 10) /* a slot is as long as the operation needs it: a power of two, */
#define RD_BOARD_SLOT_MOST ((size_t)64 << 10) /* between these two */
#define RD_BOARD_FLAGS (RD_BOARD_BYTES / RD_BOARD_SLOT_LEAST)

/* Offsets within a board. */
#define RD_BOARD_FLAGS_AT ((size_t)4 * RD_LINE)
#define RD_BOARD_LINES_AT (RD_BOARD_FLAGS_AT + RD_BOARD_FLAGS * RD_LINE)
#define RD_BOARD_SLOTS_AT ((RD_BOARD_LINES_AT + RD_BOARD_LINES * RD_LINE + 4095) / 4096 * 4096)
#define RD_BOARD_SIZE (RD_BOARD_SLOTS_AT + RD_BOARD_BYTES)

typedef enum { RD_READ_LINES, RD_READ_BYTES, RD_NUM_READ } rd_board_read_t;

/* All boards of a node, and where this rank is on them. */
typedef struct rd_board {
    char **of; /* the board of each rank, by its number; NULL: there are none */
    int nranks, self;
    uint64_t lines, bytes, messages; /* where the next operation begins */
    uint64_t published;              /* the lines that the others know this rank to have read */
    uint64_t read[RD_NUM_READ];      /* every rank has read at least so far */
    int late[RD_NUM_READ];           /* the rank that had not, when room was last missing */
    int ahead;                       /* of a run by lines: the step whose messages are fetched next, */
    int missing;                     /* and the source of the present step that had not come when it was last tried */
} rd_board_t;

/* How a plan uses the boards. */
typedef struct rd_board_plan {
    rd_board_t *board; /* NULL: it does not */
    uint32_t numbers;  /* messages that a rank has room for in each pass */
    bool by_chunk;     /* a message's number is that of its chunk; false: a rank has one message in a pass, number 0 */
    bool skips_root;   /* of a scatter: no number is that of the root's own chunk, so there is no gap in its lines */
    size_t stride;     /* from one message to the next: lines, or bytes, which are a power of two */
    size_t passes, slice;
    size_t packed; /* lines: bytes of a rank's messages, which follow one another without gaps; 0: they have gaps */
    uint32_t first, claimed; /* lines: of those that this rank writes, the first, counted from where the operation
                                begins, and how many are claimed for the next one */
} rd_board_plan_t;

/* A message in slots. */
typedef struct rd_board_slot {
    uint64_t end;    /* the position behind it */
    uint64_t number; /* its flag's, plus one */
    size_t at;       /* where it lies on a board */
} rd_board_slot_t;

static inline rd_counter_t *rd_board_read(const rd_board_t *b, int rank, rd_board_read_t what)
{
    return (rd_counter_t *)(void *)(b->of[rank] + (size_t)what * 2 * RD_LINE);
}

/* Returns true if a message up to `end` overwrites nothing behind `read`. A rank that waits for nothing may have read
 * on beyond `end`, so the difference has a sign. */
static inline bool rd_board_over(uint64_t end, uint64_t read, uint64_t ring)
{
    return (int64_t)(end - read) <= (int64_t)ring;
}

/* Looks how far all ranks have read. Returns false, with the rank that has not, if a message up to `end` has no room.
 */
bool rd_board_poll(rd_board_t *b, rd_board_read_t what, uint64_t end, uint64_t ring, int *waits_for);

static inline bool rd_board_has_room(rd_board_t *b, rd_board_read_t what, uint64_t end, uint64_t ring, int *waits_for)
{
    return rd_board_over(end, b->read[what], ring) || rd_board_poll(b, what, end, ring, waits_for);
}

/* ---- lines ---- */

static inline char *rd_board_line(char *board, uint64_t number)
{
    return board + RD_BOARD_LINES_AT + (number & (RD_BOARD_LINES - 1)) * RD_LINE;
}

/* Copies the message at `number` of a rank's board to `data`, if all of it has come with this sign. */
static inline bool rd_board_peek(char *board, uint64_t sign, uint64_t number, char *data, size_t bytes)
{
    for (size_t part; bytes; bytes -= part, data += part, number++) {
        part = rd_ll_part(bytes);
        if (!rd_ll_line_load(rd_board_line(board, number), rd_ll_sequence(sign, number), data, part))
            return false;
    }
    return true;
}

/* The same for `bytes` of a longer message, of `whole`, from byte `from` on. */
static inline bool rd_board_peek_part(char *board, uint64_t sign, uint64_t number, size_t whole, size_t from,
                                      char *data, size_t bytes)
{
    char line[RD_LL_LINE_DATA];

    for (size_t i = from / RD_LL_LINE_DATA, skip = from % RD_LL_LINE_DATA, part; bytes; i++, skip = 0) {
        if (!rd_ll_line_load(rd_board_line(board, number + i), rd_ll_sequence(sign, number + i), line,
                             rd_ll_part(whole - i * RD_LL_LINE_DATA)))
            return false;
        part = rd_ll_part(skip + bytes) - skip;
        memcpy(data, line + skip, part);
        data += part;
        bytes -= part;
    }
    return true;
}

static inline void rd_board_write(char *board, uint64_t sign, uint64_t number, const char *data, size_t bytes)
{
    for (size_t part; bytes; bytes -= part, data += part, number++) {
        part = rd_ll_part(bytes);
        rd_ll_line_store(rd_board_line(board, number), rd_ll_sequence(sign, number), data, part);
    }
}

/* Ends an operation by lines of this rank. Release: its last read of any board comes before. The others are told a
 * quarter of the ring at a time, so nobody waits for what is held back. */
static inline void rd_board_end_lines(rd_board_t *b, uint64_t lines)
{
    b->lines += lines;
    b->ahead = 0;
    if (b->lines - b->published > RD_BOARD_LINES / 4) {
        b->published = b->lines;
        atomic_store_explicit(&rd_board_read(b, b->self, RD_READ_LINES)->value, b->lines, memory_order_release);
    }
}

/* ---- slots ---- */

/* Returns where an operation's slots begin: at a multiple of their length. */
static inline uint64_t rd_board_begin(const rd_board_plan_t *p)
{
    return (p->board->bytes + p->stride - 1) / p->stride * p->stride;
}

static inline rd_board_slot_t rd_board_slot(const rd_board_plan_t *p, size_t start, int32_t chunk)
{
    uint64_t nth = start / p->slice * p->numbers + (p->by_chunk ? (uint64_t)chunk : 0);
    uint64_t position = rd_board_begin(p) + nth * p->stride;
    rd_board_slot_t slot = {position + p->stride, p->board->messages + nth + 1,
                            RD_BOARD_SLOTS_AT + (position & (RD_BOARD_BYTES - 1))};
    return slot;
}

/* Two messages under way never share a flag: there are as many as the shortest slots. */
static inline rd_counter_t *rd_board_flag(char *board, rd_board_slot_t slot)
{
    return (rd_counter_t *)(void *)(board + RD_BOARD_FLAGS_AT + (slot.number & (RD_BOARD_FLAGS - 1)) * RD_LINE);
}

/* Acquire: whoever sees the flag sees the slot. */
static inline bool rd_board_arrived(char *board, uint64_t sign, rd_board_slot_t slot)
{
    return atomic_load_explicit(&rd_board_flag(board, slot)->value, memory_order_acquire) ==
           (sign | (uint32_t)slot.number);
}

static inline void rd_board_publish(const rd_board_t *b, uint64_t sign, rd_board_slot_t slot)
{
    atomic_store_explicit(&rd_board_flag(b->of[b->self], slot)->value, sign | (uint32_t)slot.number,
                          memory_order_release);
}

/* This rank has read all that it reads of the passes before `start`. Release, as above. */
static inline void rd_board_passed(const rd_board_plan_t *p, size_t start)
{
    uint64_t position = rd_board_begin(p) + start / p->slice * p->numbers * p->stride;

    atomic_store_explicit(&rd_board_read(p->board, p->board->self, RD_READ_BYTES)->value, position,
                          memory_order_release);
}

/* Ends an operation by slots. */
static inline void rd_board_end(const rd_board_plan_t *p)
{
    rd_board_t *b = p->board;

    rd_board_passed(p, p->passes * p->slice);
    b->bytes = rd_board_begin(p) + p->passes * p->numbers * p->stride;
    b->messages += p->passes * p->numbers;
}

#endif
