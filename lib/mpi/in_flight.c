/* What was started and is not over: who makes its progress, and who tells the MPI.
 *
 * A rank that has started a collective may go on to wait for something else, in the MPI or in rondo, and others may
 * need its part before that comes. In rondo, a wait makes the progress of all that is outstanding. In the MPI:
 *
 *   Open MPI  calls whoever has registered whenever it makes progress itself, so in every call that waits.
 *   MPICH     has no such thing to register with. It asks for a request as long as that is waited for or tested
 *             (MPIX_Grequest_start), and meanwhile makes no progress for others, nor for this one where something else
 * is waited for. So a thread takes a turn every millisecond if nobody else has; it calls rondo, never the MPI, so
 * MPI_THREAD_SINGLE will do.
 *
 * None of rondo's operations is here where several threads may be in the MPI at once, so all but that thread come one
 * by one. What stand_in.c has then is its own affair, but that no thread lands it from inside of rondo.
 *
 * What is short is often over as soon as it has begun, or as soon as the other ranks have come to it, too. Then it
 * needs no request that anybody makes progress for, which would take longer than the operation itself: so the start
 * asks a few times, as long as that has been worth it. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "mpi/interpose.h"
#include "mpi/stand_in.h"

/* What was started last is last. The list is its thread's, who reads it as it likes, and changes it under the lock, as
 * what the entries say. */
static rd_mpi_flight_t *first, **end = &first;
static _Thread_local bool held; /* no turn may be made now: this thread is in one, or in rondo */
static bool keeps;              /* an error is kept until then: the user's handler may call the MPI again */
static MPI_Comm failed_on;      /* the communicator of that error, */
static int failed_with;         /* and its code; MPI_SUCCESS: there is none */
static bool ending;             /* in MPI_Finalize: nobody has waited for what is still here */
static _Atomic uint64_t turns;  /* by those in the MPI */

/* The lock is for MPICH's thread; where there is none, it would be for nobody. */
#ifdef OPEN_MPI
static void guard(void)
{
}

static void unguard(void)
{
}
#else
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void guard(void)
{
    pthread_mutex_lock(&lock);
}

static void unguard(void)
{
    pthread_mutex_unlock(&lock);
}
#endif

/* Asks rondo, for each communicator only as far as the first operation that is not over: they end in order. */
static void look(void)
{
    for (rd_mpi_flight_t *f = first; f; f = f->next)
        f->core->looked = false;
    for (rd_mpi_flight_t *f = first; f; f = f->next) {
        int done = 0;
        if (f->arrived || f->core->looked)
            continue;
        f->result = rondo_request_test(&f->request, &done);
        f->arrived = done;
        f->core->looked = !done;
    }
}

static rd_mpi_flight_t *take_arrived(void)
{
    rd_mpi_flight_t **at = &first, *f;

    while (*at && !(*at)->arrived)
        at = &(*at)->next;
    f = *at;
    if (!f)
        return NULL;
    *at = f->next;
    if (!f->next)
        end = at;
    return f;
}

bool rd_mpi_flights_keep_error(MPI_Comm comm, int code)
{
    if (!keeps)
        return false;
    if (failed_with == MPI_SUCCESS) {
        failed_on = comm;
        failed_with = code;
    }
    return true;
}

static void raise_error(void)
{
    int code = failed_with;

    failed_with = MPI_SUCCESS;
    if (code != MPI_SUCCESS && !ending)
        PMPI_Comm_call_errhandler(failed_on, code);
}

void rd_mpi_flights_enter(void)
{
    guard();
    held = keeps = true;
}

void rd_mpi_flights_leave(void)
{
    held = keeps = false;
    unguard();
    raise_error();
}

bool rd_mpi_flights_hold(bool hold)
{
    bool before = held;

    held = hold;
    return before;
}

bool rd_mpi_flights_any(void)
{
    return first != NULL;
}

void rd_mpi_flights_turn(void)
{
    rd_mpi_flight_t *f;

    if (!first || held)
        return;
    rd_mpi_flights_enter();
    look();
    f = take_arrived();
    rd_mpi_flights_leave();
    atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed);
    while (f) {
        held = keeps = true;
        f->land(f);
        held = keeps = false;
        raise_error();
        if (!first)
            return;
        guard();
        f = take_arrived();
        unguard();
    }
}

#ifdef OPEN_MPI
/* Where ranks share cores Open MPI gives the core away when nobody says that something happened, and rondo has already
 * done so for what is in flight: twice would be as late again, at every step of the operation. */
static int on_progress(void)
{
    bool mine = first && !held;

    rd_mpi_flights_turn();
    if (!held)
        rd_mpi_stand_ins_turn();
    return mine;
}

static bool registered;

static void register_once(void)
{
    int (*register_progress)(int (*call)(void)) = (int (*)(int (*)(void)))dlsym(RTLD_DEFAULT, "opal_progress_register");

    registered = register_progress && register_progress(on_progress) == 0;
}

bool rd_mpi_progress_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, register_once);
    return registered;
}

bool rd_mpi_flights_start(void)
{
    return rd_mpi_progress_start();
}

static void stop(void)
{
}

static void wake(void)
{
}
#else
#define NAP_NS 1000000 /* between two turns of the thread */
#define POLLS 32       /* at once */
#define IDLE_NAPS 50   /* without anything to look at, until it sleeps */

static pthread_t thread;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static bool started, asleep, over;

static void *make_turns(void *unused)
{
    const struct timespec nap = {0, NAP_NS};
    uint64_t seen = 0;
    int idle = 0;

    (void)unused;
    pthread_mutex_lock(&lock);
    while (!over) {
        idle = first ? 0 : idle + 1;
        if (idle > IDLE_NAPS) {
            asleep = true;
            pthread_cond_wait(&work, &lock);
            asleep = false;
            idle = 0;
            continue;
        }
        for (int i = 0; i < POLLS && first && seen == atomic_load_explicit(&turns, memory_order_relaxed); i++)
            look();
        seen = atomic_load_explicit(&turns, memory_order_relaxed);
        pthread_mutex_unlock(&lock);
        nanosleep(&nap, NULL);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

bool rd_mpi_progress_start(void)
{
    return true;
}

static void wake(void)
{
    if (asleep)
        pthread_cond_signal(&work);
}

bool rd_mpi_flights_start(void)
{
    sigset_t every, before;

    if (started)
        return true;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    started = pthread_create(&thread, NULL, make_turns, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static void stop(void)
{
    if (!started)
        return;
    pthread_mutex_lock(&lock);
    over = true;
    wake();
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
}
#endif

#define PATIENCE 16   /* questions at the start, some 30 ns each; */
#define IN_ALL_S 2e-6 /* no more of them after that: where ranks outnumber cores each gives others a turn */
#define SELDOM 64     /* calls of which one asks as often, where it was worth nothing */

static bool ask_at_start(rd_mpi_flight_t *flight)
{
    static int patience = PATIENCE, hasty;
    int most = patience || ++hasty % SELDOM ? patience : PATIENCE, done = 0, i;
    bool slow = false;
    double began = 0;

    for (i = 0; i <= most && !done && !slow; i++) {
        flight->result = rondo_request_test(&flight->request, &done);
        if (i > 0)
            slow = rd_mpi_clock() - began > IN_ALL_S;
        else if (!done && most > 0)
            began = rd_mpi_clock();
    }
    if (!done || slow)
        patience /= 2;
    else if (i > 1)
        patience = PATIENCE;
    return done;
}

bool rd_mpi_flights_add(rd_mpi_flight_t *flight, bool may_be_over)
{
    if (may_be_over && !first && ask_at_start(flight))
        return false;
    flight->next = NULL;
    *end = flight;
    end = &flight->next;
    wake();
    return true;
}

/* Nobody has waited for them, and the other ranks may never come, or have left already. The program would end without
 * this library, so it ends: what fails is no error of the program's (rondo has printed its sentence), and what the
 * others do not come to is left, with its memory. */
void rd_mpi_flights_end(void)
{
    double began = rd_mpi_clock(), longest = rd_mpi_finalize_patience();
    int left = 0;

    ending = true;
    while (first && rd_mpi_clock() - began < longest) {
        rd_mpi_flights_turn();
        rd_mpi_progress(NULL);
    }
    guard();
    for (rd_mpi_flight_t *f = first; f; f = f->next)
        left++;
    first = NULL;
    end = &first;
    unguard();
    if (left)
        fprintf(stderr,
                "rondo: MPI_Finalize was called before %d nonblocking or persistent collective call%s had been waited "
                "for: other ranks have not made all of them within %g s, so they are left\n",
                left, left == 1 ? "" : "s", longest);
    stop();
}
