/* A program that locks all memory it will have (mlockall with MCL_FUTURE), under a small limit: the kernel then refuses
 * stacks and mappings by the error that it has for too many threads. No id or communicator is made, and the sentence
 * names the limit, whether a stack is refused, or just its guard pages are, or the memory that ranks share. */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <rondo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/harness.h"

#define NOBODY 65534
#define ROOT 77 /* the kernel refuses nothing here */

/* Returns false if the kernel does not refuse what is beyond the limit. */
static bool lock(rlim_t limit)
{
    struct rlimit locked = {limit, limit};

    if (geteuid() == 0 && (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
        return false;
    if (setrlimit(RLIMIT_MEMLOCK, &locked) != 0 || mlockall(MCL_FUTURE) != 0)
        return false;
    return mmap(NULL, limit + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EAGAIN;
}

/* Returns an exit status. */
static int try_with(rlim_t limit)
{
    rondo_unique_id_t id;

    if (!lock(limit))
        return ROOT;
    if (rondo_unique_id_create(&id) == RONDO_SUCCESS) {
        printf("locked_memory: FAILED: an id was made under a limit of %llu bytes\n", (unsigned long long)limit);
        return 1;
    }
    if (strstr(rondo_last_error(NULL), "ulimit -l"))
        return 0;
    printf("locked_memory: FAILED: a limit of %llu bytes: %s\n", (unsigned long long)limit, rondo_last_error(NULL));
    return 1;
}

static size_t stack_bytes(void)
{
    pthread_attr_t attributes;
    size_t bytes = 0;

    pthread_getattr_default_np(&attributes);
    pthread_attr_getstacksize(&attributes, &bytes);
    pthread_attr_destroy(&attributes);
    return bytes;
}

/* Stacks are small enough. */
static void ranks(test_rank_t *t, void *arg)
{
    rondo_config_t config = test_host_config();
    pthread_attr_t attributes;
    rondo_comm_t comm = NULL;
    rondo_unique_id_t id;

    (void)arg;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 131072);
    pthread_setattr_default_np(&attributes);
    test_id(t, &id);
    if (!lock(4194304))
        test_stop(t, "memory was not locked");
    TEST_TRUE(t, rondo_comm_create(&comm, t->nranks, &id, t->rank, &config) != RONDO_SUCCESS);
    test_sentence(t, "ulimit -l");
}

int main(void)
{
    const rlim_t limits[] = {65536, 1048576, stack_bytes()};
    int bad = 0, status;

    test_begin("locked_memory", 60);
    setenv("RONDO_IFACE", "lo", 1);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            int result = try_with(limits[i]);
            fflush(stdout);
            _exit(result);
        }
        waitpid(child, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == ROOT)
            return ROOT;
        bad += status != 0;
    }
    bad += test_run(TEST_PROCESSES, 2, 30, ranks, NULL) != 0;
    return bad != 0;
}
