/* Memory that the kernel lets no other process read: secret memory, pages without the right to be read (x86 reads them
 * all the same), or, by a seccomp filter from some operation on, all memory. The slots carry what lies there, and no
 * rank is lost: every operation succeeds on all ranks, with the right data. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "util/harness.h"

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif
#define MOST ((size_t)4 << 20)

typedef enum { SECRET, WRITE_ONLY, FORBIDDEN, KINDS } kind_t;

static const char *const kind_names[KINDS] = {"secret memory", "pages without the right to be read", "seccomp"};

typedef struct {
    kind_t kind;
    int nranks, nodes;
    unsigned who; /* bits of the ranks whose memory, or whose reading, is concerned */
} job_t;

static int64_t *buffer(kind_t kind)
{
    int fd = kind == SECRET ? (int)syscall(SYS_memfd_secret, 0) : -1;
    if (kind == SECRET && (fd < 0 || ftruncate(fd, (off_t)MOST) != 0))
        return NULL;
    void *p = kind == SECRET ? mmap(NULL, MOST, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                             : mmap(NULL, MOST, kind == WRITE_ONLY ? PROT_WRITE : PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fd >= 0)
        close(fd);
    return p == MAP_FAILED ? NULL : p;
}

/* Returns true if there is such memory here, and the kernel refuses to read it. */
static int is_refused(kind_t kind)
{
    int64_t *p = buffer(kind), word;

    if (kind == FORBIDDEN)
        return 1;
#if !defined(__x86_64__)
    if (kind == WRITE_ONLY)
        return 0;
#endif
    if (!p)
        return 0;
    p[0] = 1;
    struct iovec here = {&word, sizeof word}, there = {p, sizeof word};
    ssize_t got = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
    munmap(p, MOST);
    return got < 0 && errno == EFAULT;
}

static void forbid(test_rank_t *t)
{
    struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        test_stop(t, "no seccomp filter: %s", strerror(errno));
}

static int64_t value(int rank, size_t i)
{
    return rank * 1000003 + (int64_t)i;
}

/* Fills `count` elements with this rank's values, `count` more for each further block. */
static void fill(int64_t *in, int rank, size_t count)
{
    for (size_t i = 0; i < count; i++)
        in[i] = value(rank, i);
}

static void check(test_rank_t *t, const int64_t *out, int rank, size_t first, size_t count, int64_t factor)
{
    for (size_t i = 0; i < count; i++)
        if (out[i] !=
            factor * (int64_t)(first + i) + (factor == 1 ? value(rank, 0) : 1000003 * factor * (factor - 1) / 2)) {
            test_fail(t, "element %zu is %lld", i, (long long)out[i]);
            return;
        }
}

static void round_of(test_rank_t *t, rondo_comm_t comm, int64_t *in, int64_t *out, size_t count)
{
    int n = t->nranks, next = (t->rank + 1) % n, before = (t->rank + n - 1) % n;

    test_note(t, "messages of %zu elements", count);
    fill(in, t->rank, count);
    TEST_OK(t, comm, rondo_group_start());
    TEST_OK(t, comm, rondo_send(in, count, RONDO_INT64, next, comm, NULL));
    TEST_OK(t, comm, rondo_recv(out, count, RONDO_INT64, before, comm, NULL));
    TEST_OK(t, comm, rondo_group_end());
    check(t, out, before, 0, count, 1);
    test_note(t, "alltoall of %zu elements", count);
    fill(in, t->rank, count * (size_t)n);
    TEST_OK(t, comm, rondo_alltoall(in, out, count, RONDO_INT64, comm, NULL));
    for (int r = 0; r < n; r++)
        check(t, out + (size_t)r * count, r, (size_t)t->rank * count, count, 1);
    test_note(t, "allreduce of %zu elements", count);
    TEST_OK(t, comm, rondo_allreduce(in, out, count, RONDO_INT64, RONDO_SUM, comm, NULL));
    check(t, out, -1, 0, count, n);
    test_note(t, "allreduce of %zu elements, in place", count);
    TEST_OK(t, comm, rondo_allreduce(in, in, count, RONDO_INT64, RONDO_SUM, comm, NULL));
    check(t, in, -1, 0, count, n);
    test_note(t, "broadcast of %zu elements", count);
    fill(in, t->rank, count);
    TEST_OK(t, comm, rondo_broadcast(in, in, count, RONDO_INT64, n - 1, comm, NULL));
    check(t, in, n - 1, 0, count, 1);
}

static void body(test_rank_t *t, void *arg)
{
    static const size_t counts[] = {4096, 100000, 4095, 65536};
    const job_t *j = arg;
    int concerned = j->who >> t->rank & 1;
    int64_t *in = buffer(concerned ? j->kind : KINDS), *out = buffer(concerned ? j->kind : KINDS);

    test_note(t, "%s", kind_names[j->kind]);
    if (!in || !out)
        test_stop(t, "no memory");
    rondo_comm_t comm = test_comm_on(t, j->nodes);
    if (!comm)
        return;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (i == 1 && j->kind == FORBIDDEN && concerned)
            forbid(t);
        if (counts[i] * sizeof *in * (size_t)j->nranks <= MOST)
            round_of(t, comm, in, out, counts[i]);
    }
    test_note(t, "destroy");
    TEST_OK(t, comm, rondo_comm_destroy(comm));
}

int main(void)
{
    static const char *const settings[][2] = {
        {"RONDO_CMA_MIN", "4096"}, {"RONDO_PROTO", "cma"}, {"RONDO_SLOT_BYTES", "4096"}};
    job_t j;
    int bad = 0, runs = 0;

    test_begin("unreadable_memory", 240);
    for (j.kind = 0; j.kind < KINDS; j.kind++) {
        if (!is_refused(j.kind)) {
            printf("%s: not here\n", kind_names[j.kind]);
            continue;
        }
        for (j.nranks = 2; j.nranks <= 5; j.nranks++)
            for (size_t s = 0; s < sizeof settings / sizeof settings[0]; s++)
                for (int some = 0; some < 2; some++) {
                    j.who = some ? 2 : ~0u;
                    j.nodes = j.nranks == 4 && some ? 2 : 1;
                    if (j.nodes == 2 && s == 1)
                        continue;
                    setenv(settings[s][0], settings[s][1], 1);
                    bad += test_run(TEST_PROCESSES, j.nranks, 60, body, &j) != 0;
                    unsetenv(settings[s][0]);
                    runs++;
                }
    }
    printf("%d runs, %d wrong\n", runs, bad);
    return bad != 0;
}
