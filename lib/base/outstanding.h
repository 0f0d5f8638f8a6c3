/* Operations that this process has begun and not finished, and that go on only while one of its threads makes progress.
 *
 * A wait in one communicator makes progress for all others that have something outstanding, because what it waits for
 * may depend on that: rank 0 waits for a request of communicator A, and rank 1, whose part of that request is not over
 * either, waits in communicator B for rank 0. Only submitted requests are outstanding outside of calls, so a process
 * that submits none never has an entry here.
 *
 * An entry is used by one thread at a time. While it is listed, that is the thread which holds `turning`: a call on the
 * communicator, or a wait in another one, which skips an entry that is in use. `listed` is written by calls on the
 * communicator alone, which do not run at the same time, and by its end, when there are no calls any more. */
#ifndef RD_BASE_OUTSTANDING_H
#define RD_BASE_OUTSTANDING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct rd_outstanding {
    struct rd_outstanding *next;
    bool (*turn)(struct rd_outstanding *entry); /* makes one turn; returns true if anything moved */
    pthread_mutex_t turning;
    _Atomic int listed;
} rd_outstanding_t;

static inline int rd_outstanding_listed(rd_outstanding_t *entry)
{
    return atomic_load_explicit(&entry->listed, memory_order_relaxed);
}

void rd_outstanding_init(rd_outstanding_t *entry, bool (*turn)(rd_outstanding_t *entry));
/* Takes `turning`, which others hold for a turn at most. It is tried until it is free, because a request of several
 * communicators takes theirs in whatever order it names them in, and waits for none while it makes a turn. */
void rd_outstanding_take(rd_outstanding_t *entry);
/* Lists an entry, and returns with `turning` held. */
void rd_outstanding_list(rd_outstanding_t *entry);
/* Removes an entry, if it is listed. No thread uses it afterwards. */
void rd_outstanding_unlist(rd_outstanding_t *entry);
/* Returns when every turn that was under way is over. */
void rd_outstanding_settle(void);

/* Makes a turn of every entry that no thread uses. Returns true if anything moved. Without entries it costs one load.
 * A turn is made by one thread at a time: the others need not wait for it. */
bool rd_outstanding_turn(void);
/* Returns true if there are entries. A thread that sleeps while there are may sleep for RD_OUTSTANDING_MS at most. */
bool rd_outstanding_any(void);
#define RD_OUTSTANDING_MS 1

#endif
