/* Liveness: a thread that sleeps in epoll until a peer of any communicator of this process is gone.
 *
 * A pidfd tells at once, and for certain, that a process of this node has ended. While one dumps core it has not: so a
 * few times a second each rank looks at the next one of its node that lives. A bootstrap socket tells of neighbours
 * on other nodes, and carries what they have heard of others. A host or a link that falls silent closes nothing: there
 * the kernels' own heartbeat ends the socket, and the thread checks a few times a second whether a socket needs a
 * faster one. A process that has ended while a child of it holds its sockets is seen by its lifeline (boot/lifeline.c).
 * When a peer is gone, the thread writes the communicator's stop word, which every wait checks, and passes the news on.
 * One lock, held while an event is handled, guards all that it uses: nothing is used after rd_liveness_remove. */
#include "transport/liveness.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "boot/sock.h"
#include "monitor/heart.h"
#include "monitor/ras_socket.h"
#include "transport/keeper.h"
#include "transport/core_dump.h"
#include "transport/events.h"
#include "transport/liveness_int.h"
#include "base/fork.h"
#include "base/thread.h"
#include "base/wait.h"

#define MOST_SOCKETS 64
#define PARTING_MS 2000    /* within which a farewell that was sent before a lifeline ended has come */
#define EVENTS 16          /* taken at once */
#define WAKE RD_EVENT_WAKE /* it ends the thread, or tells it of callbacks, letters or unread sockets */
#define SERVE (WAKE - 1)   /* somebody asks for the record of this process */

/* A descriptor that the thread observes. An event names a slot and its age, so that an event that was on its way when
 * the slot was given up, and perhaps used anew, is recognised. */
typedef struct slot {
    rd_liveness_t *liveness; /* NULL: free */
    int fd, rank;
    int is_pidfd;
    int beats, doubts; /* a socket to another node; see rd_sock_doubt */
    int spoke;         /* it has reported a failure */
    pid_t pid;         /* of a pidfd's process; 0: unknown */
    bool lifeline;
    bool kept;        /* the keeper has it, under the number of this slot, and there is no fd */
    int64_t ended_ms; /* when a lifeline ended; 0: it has not */
    uint32_t age;
} slot_t;

static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER; /* guards starting and ending the thread; before `lock` */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the slots */
static slot_t *slots;
static int nslots;
static int users; /* communicators in liveness */
static rd_liveness_t *pollers;
static _Atomic int polled, ending; /* polled: callbacks and sockets that are polled from time to time */
static _Atomic bool some_unread;   /* an exchange has failed before it had read all that had come */
static pthread_t thread;

static void fork_prepare(void)
{
    pthread_mutex_lock(&life);
    pthread_mutex_lock(&lock);
}

static void fork_parent(void)
{
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&life);
}

/* The thread stayed in the parent; the descriptors are closed by their own fork handler. */
static void fork_child(void)
{
    for (int i = 0; i < nslots; i++)
        slots[i].liveness = NULL;
    users = 0;
    rd_meetings_forget(); /* those threads stayed in the parent, too */
    pollers = NULL;
    polled = 0;
    rd_keeper_forget();
    rd_heart_forget();
    rd_events_forget();
    fork_parent();
}

static const rd_fork_handlers_t at_fork = {.prepare = fork_prepare, .parent = fork_parent, .child = fork_child};

static void wake(void *unused, bool unread)
{
    (void)unused;
    some_unread |= unread;
    (void)rd_events_wake();
}

/* ---- the thread ---- */

static void cancel_slot(slot_t *s)
{
    if (s->kept) {
        rd_keeper_drop((int)(s - slots)); /* it leaves the epoll set when it is closed */
    } else {
        rd_events_drop(s->fd);
        if (s->lifeline)
            rd_sock_close(s->fd);
    }
    s->liveness = NULL;
    s->age++;
    if (s->beats || s->pid || s->lifeline)
        atomic_fetch_sub(&polled, 1);
    s->beats = s->pid = 0;
}

static void note_gone(rd_liveness_t *w, int rank, int how)
{
    if (w->gone[rank] >= how)
        return;
    w->gone[rank] = (unsigned char)how;
    if (how == RD_DEAD)
        rd_boot_died(w->boot, rank);
    else if (rd_how_gone(w, rank) == RD_FAILED && how == RD_LEFT) /* it failed first */
        rd_boot_left(w->boot, rank);
    rd_meetings_gone(w);
}

/* Takes in who is gone as others have told. A rank of this node that executes another program goes on as a process,
 * so that its neighbours alone see its end. */
static void note_heard(rd_liveness_t *w)
{
    for (int r = 0; r < w->ctx->nranks; r++)
        if (rd_boot_is_lost(w->boot, r))
            note_gone(w, r, RD_LOST);
        else if (rd_boot_is_dead(w->boot, r))
            note_gone(w, r, RD_DEAD);
        else if (rd_boot_is_left(w->boot, r))
            note_gone(w, r, RD_LEFT);
}

/* A program ends in order, too, once a call has failed. It will come to no meeting all the same. */
static int how_ended(const rd_liveness_t *w, int rank, bool spoke)
{
    return spoke || w->ops->has_failed(w->arg, rank) ? RD_LOST : RD_DEAD;
}

/* The rank may live: those that are left ask it, by new connections. Should its lifeline end, it has failed before. */
static void note_break(rd_liveness_t *w, int rank)
{
    atomic_fetch_add(&polled, rd_redial_add(w, rank));
    for (int i = 0; i < nslots; i++)
        if (slots[i].liveness == w && slots[i].lifeline && slots[i].rank == rank)
            slots[i].spoke = 1;
}

/* Returns true if there may be more: a rank that reports a failure may end its connection in the same moment. */
static bool on_news(slot_t *s)
{
    rd_liveness_t *w = s->liveness;
    rd_boot_news_t news;
    rondo_result_t code = rd_boot_socket_ready(w->boot, s->fd, &news);
    if (code == RONDO_SUCCESS && !news.left)
        return false;
    int orderly = code == RONDO_SUCCESS || (news.silent && w->ops->has_left(w->arg, s->rank));
    int rank = s->rank;
    /* A neighbour that has only reported a failure lives, and may die while the survivors meet. */
    if (orderly || news.silent)
        cancel_slot(s);
    if (!orderly && news.silent == RD_SILENCE_BREAK)
        note_break(w, rank);
    else if (orderly || news.silent)
        note_gone(w, rank, orderly ? RD_LEFT : how_ended(w, rank, s->spoke || news.silent == RD_SILENCE_CUT));
    if (!orderly && news.silent == RD_SILENCE_CUT)
        rd_boot_lost(w->boot, rank);
    s->spoke = 1;
    if (orderly)
        return false;
    /* What the node knows comes first: who has left has not died, and the rank that has found that out says so. */
    if (news.silent || (news.failure.failed_rank >= 0 && w->ops->has_left(w->arg, news.failure.failed_rank)))
        w->ops->hear(w->arg);
    rd_boot_pass_on(w->boot, &news.failure);
    rd_boot_stop(w->stop, w->ctx, &news.failure, true);
    w->ops->tell(w->arg);
    return !news.silent;
}

static void take_letters(rd_liveness_t *w)
{
    rd_boot_question_t question;
    rd_boot_claim_t claim;

    while (rd_boot_claimed(w->boot, &claim))
        w->ops->lose_patience(w->arg, &claim);
    while (rd_boot_asked(w->boot, &question))
        w->ops->answer(w->arg, &question);
}

static void on_socket(slot_t *s)
{
    rd_liveness_t *w = s->liveness;

    while (on_news(s))
        continue;
    note_heard(w);
    take_letters(w);
}

/* Takes the letters that another thread has read, in an exchange of its own, and what one that failed has not read. */
static void hear_woken(bool unread)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < nslots; i++)
        if (slots[i].liveness && !slots[i].is_pidfd && !slots[i].lifeline)
            unread ? on_socket(&slots[i]) : take_letters(slots[i].liveness);
    pthread_mutex_unlock(&lock);
}

/* Takes in what has come by the sockets of one rank, or of all (-1). */
static void hear_sockets(rd_liveness_t *w, int rank)
{
    for (int i = 0; i < nslots; i++)
        if (slots[i].liveness == w && !slots[i].is_pidfd && !slots[i].lifeline && (rank < 0 || slots[i].rank == rank))
            on_socket(&slots[i]);
}

/* Takes in what has come already, before a rank is blamed that may only have ended because of another one. */
static void hear_all(rd_liveness_t *w)
{
    w->ops->hear(w->arg);
    hear_sockets(w, -1);
}

static void on_death(slot_t *s, const char *how)
{
    rd_liveness_t *w = s->liveness;
    int rank = s->rank, spoke = s->lifeline && s->spoke;
    cancel_slot(s); /* it stays readable for ever */
    if (w->ops->has_left(w->arg, rank)) {
        note_gone(w, rank, RD_LEFT);
        return;
    }
    hear_all(w); /* the failure, because of which the program on that rank may have ended in order */
    note_gone(w, rank, how_ended(w, rank, spoke || w->gone[rank] == RD_LOST));
    if (w->gone[rank] == RD_LOST)
        rd_boot_lost(w->boot, rank);
    else
        rd_boot_died(w->boot, rank);
    rd_boot_farewell(w->boot, RONDO_ERR_REMOTE, rank); /* first: once the stop word is set, the user may leave */
    rd_log(w->ctx, RD_LOG_INFO, "rank %d: its process %s", rank, how);
    rd_stop_died(w->stop, w->ctx, rank, rd_boot_whois(w->boot, rank));
    w->ops->tell(w->arg);
}

/* A lifeline has ended a while ago, and if its rank has left in order its farewell has come; else its process is gone,
 * though somebody still holds its other connections. */
static void on_lifeline(slot_t *s)
{
    rd_liveness_t *w = s->liveness;
    hear_sockets(w, s->rank);
    if (w->gone[s->rank] == RD_HERE && !rd_boot_has_left(w->boot, s->rank))
        on_death(s, "has ended, and a child of it holds its connections");
    else
        cancel_slot(s);
}

/* A lifeline that breaks says nothing of the process: the other connection to it goes on. */
static void lifeline_ended(slot_t *s, uint32_t events)
{
    if (s->ended_ms)
        return;
    if (!(events & EPOLLERR)) {
        s->ended_ms = rd_clock_ms();
        return;
    }
    rd_log(s->liveness->ctx, RD_LOG_INFO, "the second connection to rank %d was lost", s->rank);
    cancel_slot(s);
}

static void check_lifelines(int64_t now)
{
    for (int i = 0; i < nslots; i++)
        if (slots[i].liveness && slots[i].ended_ms && now - slots[i].ended_ms > PARTING_MS)
            on_lifeline(&slots[i]);
}

static bool on_event(uint64_t which, uint32_t events)
{
    if (which == WAKE) {
        rd_events_woken();
        hear_woken(atomic_exchange(&some_unread, false));
        return atomic_load(&ending);
    }
    if (which == SERVE) {
        rd_serve_turn();
        return false;
    }
    pthread_mutex_lock(&lock);
    slot_t *s = &slots[which & UINT32_MAX];
    if (s->liveness && s->age == (uint32_t)(which >> 32)) {
        if (s->is_pidfd)
            on_death(s, "has ended");
        else if (s->lifeline)
            lifeline_ended(s, events);
        else
            on_socket(s);
    }
    pthread_mutex_unlock(&lock);
    return false;
}

/* How far a slot's rank comes after this one, around the communicator. */
static int distance(const slot_t *s)
{
    int own = s->liveness->ctx->rank;

    return s->rank > own ? s->rank - own : s->rank - own + s->liveness->ctx->nranks;
}

/* Looks, for each communicator, whether the next process of this node after this one dumps core: so each process is
 * looked at by one other. */
static void check_processes(void)
{
    for (int i = 0; i < nslots; i++) {
        rd_liveness_t *w = slots[i].liveness;
        if (w && slots[i].pid && (w->next_slot < 0 || distance(&slots[i]) < distance(&slots[w->next_slot])))
            w->next_slot = i;
    }
    for (int i = 0; i < nslots; i++) {
        rd_liveness_t *w = slots[i].liveness;
        if (!w || w->next_slot != i)
            continue;
        w->next_slot = -1;
        if (rd_dumps_core(slots[i].pid))
            on_death(&slots[i], "crashed and dumps core");
    }
}

/* However many events come, all callbacks run as often as promised. Returns for how long the thread may sleep. */
static int poll_all(int64_t *polled_ms)
{
    int64_t now = rd_clock_ms();

    if (!atomic_load(&polled))
        return -1;
    if (now - *polled_ms >= RD_LIVENESS_MS) {
        *polled_ms = now;
        pthread_mutex_lock(&lock);
        for (rd_liveness_t *w = pollers; w; w = w->next)
            w->on_poll(w->arg);
        for (int i = 0; i < nslots; i++)
            if (slots[i].liveness && slots[i].beats)
                rd_sock_doubt(slots[i].fd, &slots[i].doubts);
        check_processes();
        check_lifelines(now);
        rd_meetings_turn();
        pthread_mutex_unlock(&lock);
        rd_heart_look(RD_HEART_MONITOR, now);
    }
    return RD_LIVENESS_MS;
}

static void *run(void *arg)
{
    struct epoll_event events[EVENTS];
    int64_t polled_ms = 0;
    (void)arg;
    rd_heart_works(RD_HEART_WATCH);
    for (;;) {
        const int ms = poll_all(&polled_ms);
        rd_heart_rests(RD_HEART_WATCH);
        int n = rd_events_await(events, EVENTS, ms);
        rd_heart_works(RD_HEART_WATCH);
        for (int i = 0; i < n; i++)
            if (on_event(events[i].data.u64, events[i].events)) {
                rd_heart_rests(RD_HEART_WATCH);
                return NULL;
            }
    }
}

static int start(void)
{
    if (rd_events_open() != 0)
        return -1;
    if ((errno = rd_thread_start(&thread, run, NULL)) == 0)
        return 0;
    rd_events_close();
    return -1;
}

static void end(void)
{
    atomic_store(&ending, 1);
    if (rd_events_wake() == 0)
        pthread_join(thread, NULL);
    rd_keeper_end();
    rd_events_close();
    atomic_store(&ending, 0);
    free(slots);
    slots = NULL;
    nslots = 0;
}

/* ---- the callers' threads ---- */

static int free_slot(void)
{
    for (int i = 0; i < nslots; i++)
        if (!slots[i].liveness)
            return i;
    int more = nslots ? 2 * nslots : 32;
    slot_t *grown = realloc(slots, (size_t)more * sizeof(*grown));
    if (!grown)
        return -1;
    memset(grown + nslots, 0, (size_t)(more - nslots) * sizeof(*grown));
    slots = grown;
    int i = nslots;
    nslots = more;
    return i;
}

/* Sockets are polled by edge: an exchange of the bootstrap may leave bytes in them that are not for this thread. */
static int observe_fd(const slot_t *what)
{
    int i = free_slot();
    if (i < 0)
        return -1;
    uint32_t age = slots[i].age;
    slots[i] = *what;
    slots[i].age = age;
    uint32_t events = what->is_pidfd ? EPOLLIN : EPOLLIN | EPOLLRDHUP | EPOLLET;
    if (what->lifeline)
        events = EPOLLRDHUP | EPOLLET;
    if (rd_events_add(what->fd, events, (uint64_t)age << 32 | (uint32_t)i) != 0) {
        slots[i].liveness = NULL;
        return -1;
    }
    slots[i].kept = what->lifeline && rd_keeper_hold(i, what->fd);
    if ((what->beats || what->pid || what->lifeline) && atomic_fetch_add(&polled, 1) == 0)
        wake(NULL, false);
    return 0;
}

static int observe_all(rd_liveness_t *w, const rd_node_t *node)
{
    int fds[MOST_SOCKETS], ranks[MOST_SOCKETS];
    int n = rd_boot_sockets(w->boot, fds, ranks, MOST_SOCKETS);
    for (int i = 0; i < n; i++) {
        int beats = node->node_of[ranks[i]] !=
                    node->node_of[node->local[node->self]]; /* within the node a pidfd is more certain */
        if (beats)
            rd_sock_heartbeat(fds[i], true);
        if (observe_fd(&(slot_t){.liveness = w, .fd = fds[i], .rank = ranks[i], .beats = beats}) != 0)
            return -1;
    }
    for (int m = 0; m < node->nlocal; m++)
        if (node->pidfd[m] >= 0 && observe_fd(&(slot_t){.liveness = w,
                                                        .fd = node->pidfd[m],
                                                        .rank = node->local[m],
                                                        .is_pidfd = 1,
                                                        .pid = rd_pidfd_pid(node->pidfd[m])}) != 0)
            return -1;
    return 0;
}

static int observe_lifelines(rd_liveness_t *w)
{
    int fds[MOST_SOCKETS], ranks[MOST_SOCKETS], failed = 0;
    int n = rd_boot_take_lifelines(w->boot, fds, ranks, MOST_SOCKETS);
    for (int i = 0; i < n; i++) {
        if (failed || observe_fd(&(slot_t){.liveness = w, .fd = fds[i], .rank = ranks[i], .lifeline = true}) != 0) {
            rd_sock_close(fds[i]);
            failed = -1;
        }
    }
    return failed;
}

static bool lives(const void *arg, int rank)
{
    const rd_node_t *node = arg;

    for (int m = 0; m < node->nlocal; m++)
        if (node->local[m] == rank && node->pidfd[m] >= 0)
            return rd_pidfd_goes_on(node->pidfd[m]);
    return false;
}

static void forget(rd_liveness_t *w)
{
    rd_boot_on_letter(w->boot, NULL, NULL);
    rd_boot_ask_who_lives(w->boot, NULL, NULL);
    pthread_mutex_lock(&lock);
    rd_meetings_ended(w);
    atomic_fetch_sub(&polled, rd_redials_end(w));
    for (int i = 0; i < nslots; i++)
        if (slots[i].liveness == w)
            cancel_slot(&slots[i]);
    for (rd_liveness_t **at = &pollers; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            atomic_fetch_sub(&polled, 1);
            break;
        }
    pthread_mutex_unlock(&lock);
}

rondo_result_t rd_liveness_add(rd_liveness_t **liveness, rd_boot_t *boot, const rd_node_t *node, rd_log_ctx_t *ctx,
                               rd_stop_t *stop, const rd_liveness_ops_t *ops, void *arg)
{
    rondo_result_t code = RONDO_ERR_SYSTEM;
    size_t nranks = (size_t)rd_boot_nranks(boot);
    rd_liveness_t *w = calloc(1, sizeof(*w) + nranks);
    if (!w)
        return rd_error(ctx, RONDO_ERR_NO_MEMORY, "no memory for the liveness of %zu ranks", nranks);
    *w = (rd_liveness_t){
        .boot = boot, .ctx = ctx, .stop = stop, .ops = ops, .arg = arg, .pid = getpid(), .next_slot = -1};
    w->gone = (unsigned char *)(w + 1);
    rd_fork_register(RD_FORK_LIVENESS, &at_fork);
    pthread_mutex_lock(&life);
    if (users == 0 && start() != 0)
        goto unlock;
    users++;
    pthread_mutex_lock(&lock);
    int failed = observe_all(w, node) != 0 || observe_lifelines(w) != 0;
    rd_serve_observe(rd_events_fd(), SERVE); /* it comes and goes with the record of this process */
    pthread_mutex_unlock(&lock);
    if (!failed) {
        rd_boot_on_letter(boot, wake, NULL);
        rd_boot_ask_who_lives(boot, lives, node);
        pthread_mutex_unlock(&life);
        *liveness = w;
        return RONDO_SUCCESS;
    }
    forget(w);
    if (--users == 0)
        end();
unlock:
    code = rd_error(ctx, code, "liveness cannot observe the other ranks: %s", rd_thread_strerror(errno));
    pthread_mutex_unlock(&life);
    free(w);
    return code;
}

void rd_liveness_poll(rd_liveness_t *w, void (*on_poll)(void *arg))
{
    pthread_mutex_lock(&lock);
    w->on_poll = on_poll;
    w->next = pollers;
    pollers = w;
    atomic_fetch_add(&polled, 1);
    wake(NULL, false);
    pthread_mutex_unlock(&lock);
}

void rd_liveness_remove(rd_liveness_t *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&life);
    if (w->pid == getpid()) {
        forget(w);
        if (--users == 0)
            end();
    }
    pthread_mutex_unlock(&life);
    free(w);
}

bool rd_liveness_died(rd_liveness_t *w, int rank)
{
    return rd_boot_is_dead(w->boot, rank);
}

void rd_liveness_meeting(rd_liveness_t *liveness, rd_meeting_t *meeting, const int *members, int nmembers)
{
    *meeting = (rd_meeting_t){.liveness = liveness, .members = members, .nmembers = nmembers, .gone = -1};
    pthread_mutex_lock(&lock);
    note_heard(liveness);
    rd_meetings_add(meeting);
    pthread_mutex_unlock(&lock);
}

void rd_liveness_meeting_begin(rd_meeting_t *meeting, rd_log_ctx_t *ctx, rd_stop_t *stop)
{
    pthread_mutex_lock(&lock);
    meeting->ctx = ctx;
    meeting->stop = stop;
    rd_meeting_tell(meeting);
    pthread_mutex_unlock(&lock);
}

void rd_liveness_meeting_end(rd_meeting_t *meeting)
{
    pthread_mutex_lock(&lock);
    rd_meetings_remove(meeting);
    pthread_mutex_unlock(&lock);
}
