/* The signature of what a rank calls: 32 bits that are alike on ranks that have made the same calls of a communicator
 * in the same order, and that tell apart those that have not, but for once in 2^32. It goes along with everything that
 * a collective sends, in bits that were not used, and is compared where the message is looked for.
 *
 * Each call has a hash. The running hash takes in one call after the other,
 *
 *     running = running * ODD + hash of the call
 *
 * so a call that one rank has left out, made twice, or made in another order tells, too, and goes on telling; and two
 * ranks that have made the same calls have the same running hash whatever it is. Its upper half is the signature: the
 * lower half of a signed word is free for the number of a line, a slot or a call.
 *
 * A call's hash says
 *
 *     of a reduction        collective, root, type, kind of operator, count, table of counts. Not the scalar of an
 *                           operator that the user has made, which may be each rank's own
 *     of what only moves    collective, root, bytes of a block, table of bytes: ranks may give the same bytes another
 *                           type
 *     of alltoallv, gatherv, scatterv
 *                           collective and root: their lengths are known to pairs alone, and are compared message by
 *                           message (transport/announce.h)
 *
 * and the tag, where there is one, and what the planner has chosen, where a tuner has a say in it (plan/tuner.h).
 *
 * What the rank has called lately lies in the node's shared memory, so that a rank that waits finds who calls something
 * else, and in what it differs (progress/unlike.h): of each of the last calls one signed word with its number, and of
 * the last calls that differed from the one before them what they were. A call that repeats the one before it costs one
 * multiplication and one store. */
#ifndef RD_MONITOR_CALLED_H
#define RD_MONITOR_CALLED_H

#include <stdbool.h>

#include "monitor/seat.h"

/* More calls than a rank can be ahead of one that has to take what it sends: a call of data takes a line or a slot. */
#define RD_CALLED 512
#define RD_CALLED_RUNS 32

#define RD_SIGN UINT64_C(0xffffffff00000000) /* a word's signature; the rest is free */

typedef struct rd_called_run {
    _Alignas(64) _Atomic uint64_t first; /* the number of its first call; 0: there is none, or it is being written */
    _Atomic uint64_t count, bytes, tables, tag, tuned;
    _Atomic uint64_t what; /* collective, type, operator and flags, a byte each, and the root above them */
} rd_called_run_t;

/* The same, out of the memory that others see. */
typedef struct rd_called_words {
    uint64_t first, count, bytes, tables, tag, tuned, what;
} rd_called_words_t;

/* Of one rank and communicator, which alone writes it. */
typedef struct rd_called {
    _Alignas(
        64) _Atomic uint64_t words[RD_CALLED]; /* call n at n % RD_CALLED: its signature, and n in the lower half */
    rd_called_run_t runs[RD_CALLED_RUNS];
} rd_called_t;

/* The last calls of a rank, for one on another node: of words in one piece of the ring, the latest last. */
#define RD_CALLED_SENT 128
typedef struct rd_called_digest {
    uint64_t words[RD_CALLED_SENT];
    rd_called_words_t runs[RD_CALLED_RUNS];
} rd_called_digest_t;

/* A call, as it is signed. */
typedef struct rd_signed_call {
    rd_monitor_call_t call;
    uint64_t tables; /* of allgatherv and reduce_scatterv: a hash of what every rank knows; else 0 */
    uint64_t tuned;  /* a word for what was chosen (plan/tuner.h); 0: no tuner has a say in it */
    uint64_t hash;   /* of all this, never 0; 0: nothing is signed */
} rd_signed_call_t;

/* A rank's own part. All zero: nothing is signed, and every signature is 0. */
typedef struct rd_signing {
    rd_called_t *called; /* NULL: nothing is signed */
    uint64_t running;
    uint64_t last;       /* hash of the last call, */
    uint64_t last_count; /* and what it need not say */
    uint8_t last_type;
    uint64_t runs;
} rd_signing_t;

static inline uint64_t rd_sign_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

/* Sets the call's hash. `reduces`: type, operator and count matter, else bytes. */
void rd_sign_hash(rd_signed_call_t *call, bool reduces);

/* Return the signature of the last call, in the upper half. The second takes in call `number`, which repeats the one
 * before it: `hash` is its hash. */
static inline uint64_t rd_sign_now(const rd_signing_t *s)
{
    return s->running & RD_SIGN;
}

static inline uint64_t rd_sign_repeat(rd_signing_t *s, uint64_t hash, uint64_t number)
{
    if (!hash)
        return 0;
    s->running = s->running * UINT64_C(0xd1342543de82ef95) + hash;
    uint64_t sign = s->running & RD_SIGN;
    atomic_store_explicit(&s->called->words[number % RD_CALLED], sign | (uint32_t)number, memory_order_release);
    return sign;
}

/* The same for any call, where calls are signed. */
uint64_t rd_sign_call(rd_signing_t *s, const rd_signed_call_t *call, uint64_t number);

/* Returns true if the rank has made call `number`, and fewer than RD_CALLED since, which would have overwritten it:
 * then *sign is its signature, in the upper half. */
static inline bool rd_called_sign(const rd_called_t *called, uint64_t number, uint64_t *sign)
{
    uint64_t word = atomic_load_explicit(&called->words[number % RD_CALLED], memory_order_acquire);

    *sign = word & RD_SIGN;
    return number && (uint32_t)word == (uint32_t)number;
}

/* Writes down the last calls, and adds what another rank has written to what is known of it: `heard` is nobody's own.
 */
void rd_called_tell(const rd_called_t *called, rd_called_digest_t *digest);
void rd_called_hear(rd_called_t *heard, const rd_called_digest_t *digest);

/* Finds what call `number` was. Returns false if that is forgotten. */
bool rd_called_find(const rd_called_t *called, uint64_t number, rd_signed_call_t *call);

#endif
