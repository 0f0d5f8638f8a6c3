/* What the ranks and the attacker of hostile.c share. */
#ifndef TEST_HOSTILE_H
#define TEST_HOSTILE_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "rondo.h"

#define RANKS 4

typedef enum {
    SCAN,        /* connects and closes */
    RESET,       /* connects and resets */
    GARBAGE,     /* random bytes */
    HTTP,        /* a web client */
    HALF_OPEN,   /* says nothing, or half a hello, and stays */
    DRIP,        /* a right hello, byte by byte */
    OVERSIZE,    /* a right hello, then a record of 4 GiB instead of a proof */
    OTHER_JOB,   /* a right hello of another job */
    OTHER_WIRE,  /* of another version */
    WRONG_PROOF, /* a right hello, a random proof */
    REPLAY,      /* hello and proof as recorded from one who has the secret */
    REFLECT,     /* whatever comes goes back */
    UCX_LIKE,    /* nearly what UCX's tcp begins with, then garbage: who knows the right beginning is let in by UCX */
    NUM_KINDS
} kind_t;
extern const char *const kind_names[NUM_KINDS];

typedef enum { MAKING, RUNNING, SHRINKING, OVER } phase_t;

/* Between ranks, attacker and parent. */
typedef struct {
    _Atomic int phase;
    _Atomic int known; /* the id lies here */
    rondo_unique_id_t id;
    _Atomic pid_t pid[RANKS];
    _Atomic int ready;                    /* ranks that have done with a phase */
    _Atomic long done[OVER][NUM_KINDS];   /* connections that have come and gone */
    _Atomic long answered, recorded;      /* got a hello; genuine handshakes, to be replayed */
    _Atomic long proofs, shown_out, kept; /* wrong proofs sent; ended for it; not within the limit */
    _Atomic int attack_over;
} board_t;

typedef struct {
    long count;
    uint64_t seed;
    int verbose, nodes;
    int kind; /* only this one; NUM_KINDS: all */
    board_t *board;
} trial_t;

/* Until the board says that it is over; then the process ends. */
_Noreturn void attack(const trial_t *trial);

#endif
