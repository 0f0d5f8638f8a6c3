/* A way that is slower than it need be is said at WARN, once a process, with what can be done: here the kernel refuses
 * that a rank reads another one's memory (CMA). Results are right. Who says RONDO_CMA=0 is told nothing.
 */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/harness.h"

#define COUNT 200000

static char log_name[] = "/tmp/rondo_slow_ways_XXXXXX";

/* From here on process_vm_readv fails with EPERM in this process. */
static int refuse_reads(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

static void two_communicators(test_rank_t *t, void *arg)
{
    static int in[COUNT], out[COUNT];

    if (*(int *)arg && refuse_reads() != 0)
        test_stop(t, "seccomp is not to be had");
    for (int i = 0; i < COUNT; i++)
        in[i] = i + t->rank;
    for (int k = 0; k < 2; k++) {
        rondo_comm_t comm = test_comm(t, NULL);
        int from = (t->rank + t->nranks - 1) % t->nranks;
        TEST_OK(t, comm, rondo_group_start());
        TEST_OK(t, comm, rondo_send(in, COUNT, RONDO_INT32, (t->rank + 1) % t->nranks, comm, NULL));
        TEST_OK(t, comm, rondo_recv(out, COUNT, RONDO_INT32, from, comm, NULL));
        TEST_OK(t, comm, rondo_group_end());
        for (int i = 0; i < COUNT; i++)
            if (out[i] != i + from)
                test_stop(t, "element %d is %d", i, out[i]);
        TEST_OK(t, comm, rondo_comm_destroy(comm));
    }
}

/* Returns how many lines of the log have all of these words, and empties it. */
static int lines(const char *word, const char *other)
{
    FILE *file = fopen(log_name, "r");
    char line[2048];
    int n = 0;

    while (file && fgets(line, sizeof line, file))
        n += strstr(line, word) && strstr(line, other);
    if (file)
        fclose(file);
    return truncate(log_name, 0) == 0 ? n : -1;
}

static int expect(const char *what, int refused, int wanted)
{
    int bad = test_run(TEST_PROCESSES, 3, 60, two_communicators, &refused);
    int n = lines("may not read the memory", "ptrace_scope");

    if (n != wanted)
        fprintf(stderr, "%s: said %d times, not %d\n", what, n, wanted);
    return bad + (n != wanted);
}

int main(void)
{
    int fd = mkstemp(log_name), bad;

    if (fd < 0)
        return 1;
    close(fd);
    setenv("RONDO_DEBUG", "warn", 1);
    setenv("RONDO_DEBUG_FILE", log_name, 1);
    test_begin("slow_ways", 120);
    bad = expect("reads are refused", 1, 1);
    setenv("RONDO_CMA", "0", 1);
    bad += expect("RONDO_CMA=0", 1, 0);
    unlink(log_name);
    return bad != 0;
}
