/* Ranks without mpirun: a test names how many it wants, as processes or as threads of one process, and what each does.
 *
 * The harness forks them, hands the unique ids from rank 0 to the others through shared memory, keeps for each rank the
 * text of what it is doing, and at the deadline kills those that are left and prints those texts. Nothing of it has a
 * name in the file system, and the ranks die with their parent, so nothing is left whatever happens.
 */
#ifndef TEST_HARNESS_H
#define TEST_HARNESS_H

#include <rondo.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TEST_MAX_RANKS 72
#define TEST_SKIPPED 77

typedef enum { TEST_PROCESSES, TEST_THREADS } test_kind_t;

typedef struct test_rank {
    int rank, nranks;
    test_kind_t kind;
    unsigned ids;    /* unique ids that this rank has taken so far */
    unsigned agreed; /* values that this rank has handed to test_agree so far */
    unsigned barriers;
    struct test_shared *shared;
} test_rank_t;

typedef void (*test_body_fn)(test_rank_t *t, void *arg);

/* First thing in main: unbuffered lines, an alarm after `seconds` (times RONDO_TEST_SLOW, if set, and later where other
 * programs want the cores while ranks run), the environment that a test wants (host memory, quiet unless the caller
 * said otherwise). */
void test_begin(const char *name, int seconds);

/* The command line of a test that makes trials: --seed and --count. Returns false if there is another option. */
bool test_trials(int argc, char **argv, uint64_t *seed, int *count);
/* Runs `body` on every rank, on the hosts of RONDO_TEST_HOSTS if it is set (played/play.c); returns the number of
 * failures, 0 when all is well. */
int test_run(test_kind_t kind, int nranks, int seconds, test_body_fn body, void *arg);

/* A parent that does more than wait: `step` is called about every 0.1 ms while ranks run (processes only; pid 0: has
 * ended), and `victims`, a bit set of ranks, may end by SIGKILL, or by `signal` if that is set, without that being a
 * failure. */
typedef struct test_director {
    void (*step)(struct test_director *d, const pid_t *pid);
    void *arg;
    unsigned victims;
    int signal;
    /* What became of the run. */
    int hung, crashed;
} test_director_t;
int test_run_directed(test_director_t *d, int nranks, int seconds, test_body_fn body, void *arg);

/* For a test that waits more than it computes: part(0) to part(n - 1) at once, each in a process of its own, which may
 * run ranks. A part returns the number of its failures; the sum of all is returned. Nothing that a part writes is seen
 * by another, nor afterwards. */
int test_at_once(int n, int (*part)(int i));

const char *test_kind_name(test_kind_t kind);

/* What the rank does now; printed when it fails or hangs. */
void test_note(test_rank_t *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *test_noted(const test_rank_t *t);
/* Counts a failure and prints it, the first few of a run. The rank goes on. */
void test_fail(test_rank_t *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Counts a failure and ends the rank: what follows would make no sense. */
void test_stop(test_rank_t *t, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
int test_failures(const test_rank_t *t); /* of all ranks so far */

/* Collective: all ranks get one new unique id, made by rank 0. */
void test_id(test_rank_t *t, rondo_unique_id_t *id);
/* The same, or 0 if rank 0 has ended before it made one. */
int test_id_unless_ended(test_rank_t *t, rondo_unique_id_t *id);
/* Collective: a communicator over all ranks; the rank ends when it cannot be made. */
rondo_comm_t test_comm(test_rank_t *t, const rondo_config_t *config);
/* Collective: creates a communicator of all ranks on host memory, which must give `want`; where it fails, the sentence
 * must have `word`. NULL: it has failed. */
rondo_comm_t test_comm_gives(test_rank_t *t, rondo_result_t want, const char *word);
/* Fails unless the thread's last error has `word`. */
void test_sentence(test_rank_t *t, const char *word);

/* Returns true for what a rank gets that comes to a creation more than 0.4 s after this has failed for who made the id,
 * as it may without a core: the maker has given up, and the sentence is about where it is said. */
bool test_came_late(rondo_result_t result, const char *sentence);
/* Waits until what has returned `result` with blocking = 0 and made `comm` is over. Returns how it has ended. */
rondo_result_t test_settled(rondo_comm_t comm, rondo_result_t result);
rondo_config_t test_host_config(void); /* all defaults, on host memory */
/* Ranks in processes of their own play so many nodes, in turns. Before they make a communicator. */
void test_play_node(const test_rank_t *t, int nodes);
/* On host memory; if there are several "nodes", the ranks are dealt out to them, and UCX carries what passes between
 * them. NULL: it is not built in. */
rondo_comm_t test_comm_on(test_rank_t *t, int nodes);
/* Returns true if something carries what passes between nodes here. Before ranks are run. */
bool test_has_network(void);
/* The host of a rank, by RONDO_TEST_HOSTS: a list as 0,0,1, whose entries ranks take in turn; -1: it is not set. */
int test_host_of(int rank);
/* Collective: who is in this communicator, as bits of what each passes as `rank`; 0: it has failed. */
unsigned test_group(rondo_comm_t comm, int rank);
/* Collective, without rondo. */
void test_barrier(test_rank_t *t);
/* Every rank hands in its k-th value; they must be equal. `label` says what it is of. */
void test_agree(test_rank_t *t, uint64_t value, const char *label);

/* A failure with the text of the call and rondo's own sentence, unless the result is as wanted. Nonzero: as wanted. */
int test_result(test_rank_t *t, rondo_comm_t comm, rondo_result_t got, rondo_result_t want, const char *text);
#define TEST_OK(t, comm, call) test_result(t, comm, call, RONDO_SUCCESS, #call)
#define TEST_GIVES(t, comm, want, call) test_result(t, comm, call, want, #call)
#define TEST_TRUE(t, condition)                                                                                        \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            test_fail(t, "%s:%d: not true: %s", __FILE__, __LINE__, #condition);                                       \
    } while (0)

/* Numbers from a seed. */
uint64_t test_mix(uint64_t x);
uint64_t test_random(uint64_t *state);
unsigned test_below(uint64_t *state, unsigned limit);

int64_t test_clock_us(void);
bool test_is_stopped(pid_t pid);            /* by a signal, and not continued */
int test_count_entries(const char *folder); /* of "/proc/self/fd" and the like; -1: cannot be read */
int test_count_files(void);                 /* of rondo in /dev/shm, where other programs have theirs */

#endif
