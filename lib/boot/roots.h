/* Several rendezvous for one communicator. Root i of R serves a block of consecutive ranks, about n / R of them. The
 * neighbours that its ranks dial are in its own block and in those of about 2 log2(R) other roots: it dials these, with
 * the ids that its ranks bring, and asks each for the contacts of its block. What goes wrong at one root it tells all
 * that it is connected to, and they tell theirs: each root asks the next one at least, so all hear of it.
 *
 *   rank                 root                                        root of another block
 *   ROOTS, JOIN  -->
 *                        ASK                                    -->
 *                                     its block is complete:    <--  BLOCK ...
 *               <--      TABLE, once all blocks are here
 *   READY        -->
 *                        READY, when its ranks are              <->
 */
#ifndef RD_BOOT_ROOTS_H
#define RD_BOOT_ROOTS_H

#include <poll.h>

#include "boot/dial.h"
#include "boot/rendezvous.h"

/* What all ranks and roots of a creation have alike: of one id it is all 0. */
typedef struct rd_roots_plan {
    int32_t nranks, nroots;
    unsigned char list[32]; /* a hash of all ids */
} rd_roots_plan_t;

/* RD_REC_ROOTS: the head, and then, under a key that follows from the id of the root that it is sent to, the other
 * roots that this one needs: their ids' secrets must not be read on the way. */
typedef struct rd_root {
    rd_addr_t addr;
    rd_creds_t creds;
    char maker[36];
    int32_t index;
} rd_root_t;

typedef struct rd_roots_head {
    rd_roots_plan_t plan;
    int32_t index, from; /* from: the root that asks; -1: a rank */
} rd_roots_head_t;

#define RD_ROOTS_MOST 128 /* other roots that one needs: less than 3 for each round */

/* Which ranks come to root `index`: `count` of them, from `first` on. */
void rd_roots_block(int nranks, int nroots, int index, int *first, int *count);
int rd_roots_index(int nranks, int nroots, int rank); /* the root of a rank */
/* Lists the other roots that root `index` needs, at most RD_ROOTS_MOST. Returns their number. */
int rd_roots_needed(int nranks, int nroots, int index, int needed[RD_ROOTS_MOST]);

/* A connection between two roots. */
typedef struct rd_root_link {
    rd_root_t root; /* that is dialled */
    rd_dial_t dial; /* its channel; of one that has come, too */
    int asked, informed;
    int given, done; /* given: it has this root's block; done: it needs this one no more */
    int count, got;  /* contacts of its block, and those that have come */
    rd_contact_t *contacts;
} rd_root_link_t;

typedef struct rd_roots {
    rd_roots_plan_t plan;
    int known, index, first, count;  /* known: a rank or another root has said what this is; the block */
    int roots_known;                 /* the others are known */
    bool single;                     /* a rank has come with one id, so there are no others */
    rd_root_link_t *ask, *came;      /* by this one; by others */
    int nask, ncame, room, expected; /* expected: the roots that will come */
    const rd_contact_t *own;         /* this root's block, when it is complete */
    int ready;                       /* it has said that its ranks are */
    rd_fail_t fail;                  /* the first failure that a link has brought */
    const char *maker;
} rd_roots_t;

/* Write and read that record; `record` has room for RD_RECORD_DATA bytes. They return its length, and the number of
 * roots, or -1 if it is none of this id. */
size_t rd_roots_seal(unsigned char *record, const rd_creds_t *creds, const rd_roots_head_t *head, const rd_root_t *root,
                     int n);
int rd_roots_open(const unsigned char *record, size_t bytes, const rd_creds_t *creds, rd_roots_head_t *head,
                  rd_root_t root[RD_ROOTS_MOST]);

/* Takes the plan that a rank or another root has. Returns false if it is another one than before. */
bool rd_roots_agree(rd_roots_t *r, const rd_roots_head_t *head);
/* Takes the list of a rank's ROOTS. Returns 0, or -1 if there is no memory. */
int rd_roots_begin(rd_roots_t *r, const rd_root_t *roots, int n);
/* Takes over a root that has come. Returns 0, or -1 if there is no memory. */
int rd_roots_admit(rd_roots_t *r, rd_chan_t *chan);
int rd_roots_polls(const rd_roots_t *r);                  /* the most that the next one fills */
int rd_roots_fill(const rd_roots_t *r, struct pollfd *p); /* returns their number */
int rd_roots_fds(const rd_roots_t *r, int *fds); /* those of the links, as many at most; returns their number */
/* Does what can be done without waiting. What goes wrong stands in r->fail then. */
void rd_roots_pump(rd_roots_t *r);
bool rd_roots_complete(const rd_roots_t *r); /* all blocks that are needed have come */
/* The contact of a rank of another block; NULL: that was not needed. */
const rd_contact_t *rd_roots_contact(const rd_roots_t *r, int rank);
void rd_roots_tell(rd_roots_t *r, const rd_fail_t *fail); /* tells all of a failure, those that still come, too */
void rd_roots_ready(rd_roots_t *r);
bool rd_roots_flushed(const rd_roots_t *r); /* all that was said has been sent */
/* The last word of each of them has come. A connection that is closed before takes with it what it has not read. */
bool rd_roots_parted(const rd_roots_t *r);
bool rd_roots_informed(const rd_roots_t *r); /* of a failure, all roots that can be informed, and that will come */
void rd_roots_end(rd_roots_t *r);

#endif
