/* Strangers at the socket over which a node's descriptors pass: silence, garbage with a descriptor attached, a member
 * of another job, a rank that is not expected. They get no descriptor; the real members get the memory, a pidfd of
 * everybody and what the others have brought along, and nothing that was opened stays open. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/fd_pass.h"

#define RANKS 4
#define STRANGERS 80

static rd_stop_t stop;
static rd_pass_t pass = {.nranks = RANKS, .stop = &stop, .brought = -1};
static unsigned char name[RD_NODE_NAME];
static pthread_barrier_t come, led;

static int count_fds(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Ranks 0 and 1 bring a descriptor along, of a file that says whose it is. */
static int brought_by(int rank)
{
    char who = (char)('0' + rank);
    int fd = rank < 2 ? memfd_create("brought", MFD_CLOEXEC) : -1;
    if (fd >= 0 && pwrite(fd, &who, 1, 0) != 1)
        exit(1);
    return fd;
}

/* Returns true if what the others have brought, and nothing else, is there; closes it. */
static int has_brought(const int others[RANKS], int self)
{
    int good = 1;
    for (int r = 0; r < RANKS; r++) {
        char who = 0;
        if (r < 2 && r != self)
            good &= others[r] >= 0 && pread(others[r], &who, 1, 0) == 1 && who == '0' + r;
        else
            good &= others[r] < 0;
        rd_fd_close(others[r]);
    }
    return good;
}

/* 0: got all; 1: got nothing; 2: something between. */
static int follow(int rank, const rd_pass_t *as)
{
    int memory = -1, pidfd[RANKS] = {-1, -1, -1, -1}, others[RANKS] = {-1, -1, -1, -1}, known = 0;
    rd_pass_t p = *as;
    p.rank = rank;
    p.brought = brought_by(rank);
    p.others = others;
    int fd = rd_pass_connect(name);
    if (fd < 0 || rd_pass_follow(&p, fd, name, &memory, pidfd, NULL) != RONDO_SUCCESS)
        return 2;
    for (int r = 0; r < RANKS; r++) {
        known += pidfd[r] >= 0;
        rd_fd_close(pidfd[r]);
    }
    if (memory < 0)
        return known || others[0] >= 0 || others[1] >= 0 ? 2 : 1;
    char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    int right = at != MAP_FAILED && strcmp(at, "shared") == 0;
    rd_fd_close(memory);
    return right && known == RANKS - 1 && has_brought(others, rank) ? 0 : 2; /* rank 3 never comes */
}

/* Sends the text with two descriptors attached, which the listener must not keep. */
static void send_with(int fd, char *text, size_t bytes)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {.align = {CMSG_LEN(2 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec io = {text, bytes};
    struct msghdr message = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control};
    const int some[2] = {STDOUT_FILENO, STDERR_FILENO};
    memcpy(CMSG_DATA(&control.align), some, sizeof some);
    sendmsg(fd, &message, MSG_NOSIGNAL);
}

/* At the listener before it opens, and until the members are through. */
static void *pending(void *arg)
{
    char text[500];
    int kind = (int)(intptr_t)arg, fd = rd_pass_connect(name);
    memset(text, kind, sizeof(text));
    if (fd >= 0 && kind)
        send_with(fd, text, sizeof(text));
    pthread_barrier_wait(&come);
    pthread_barrier_wait(&led);
    rd_fd_close(fd);
    return NULL;
}

static int lead(int listener)
{
    unsigned char expected[RANKS] = {0, 1, 1, 0};
    int pidfd[RANKS] = {-1, -1, -1, -1}, others[RANKS] = {-1, -1, -1, -1}, bad = 0;
    pthread_t t[STRANGERS];
    int memory = memfd_create("test", MFD_CLOEXEC);
    if (memory < 0 || ftruncate(memory, 4096) != 0 || pwrite(memory, "shared", 7, 0) != 7)
        return 1;
    pthread_barrier_init(&come, NULL, STRANGERS + 1);
    pthread_barrier_init(&led, NULL, STRANGERS + 1);
    for (int i = 0; i < STRANGERS; i++)
        pthread_create(&t[i], NULL, pending, (void *)(intptr_t)(i % 3));
    pthread_barrier_wait(&come);
    pass.brought = brought_by(0);
    pass.others = others;
    bad |= rd_pass_lead(&pass, listener, name, expected, memory, pidfd, NULL) != RONDO_SUCCESS;
    for (int r = 0; r < RANKS; r++) {
        bad |= (pidfd[r] >= 0) != (r < 3);
        rd_fd_close(pidfd[r]);
    }
    pthread_barrier_wait(&led);
    for (int i = 0; i < STRANGERS; i++)
        pthread_join(t[i], NULL);
    bad |= !has_brought(others, 0);
    close(pass.brought);
    close(memory);
    return bad;
}

int main(void)
{
    int status, bad = 0;
    alarm(30);
    if (sodium_init() < 0)
        return 1;
    randombytes_buf(&pass.creds, sizeof(pass.creds));
    int before = count_fds();
    int listener = rd_pass_listen(name);
    if (listener < 0)
        return 1;
    for (int i = 0; i < 4; i++) { /* two members, one who was not asked, one of another job */
        if (fork() != 0)
            continue;
        static const int want[] = {0, 0, 1, 1}, as[] = {1, 2, 3, 1};
        alarm(25);
        if (i == 3)
            pass.creds.secret[0]++;
        int got = follow(as[i], &pass);
        if (got != want[i])
            printf("member %d: %d\n", i, got);
        _exit(got != want[i]);
    }
    bad |= lead(listener);
    rd_fd_close(listener);
    while (wait(&status) > 0)
        bad |= status != 0;
    if (count_fds() != before) {
        printf("descriptors: %d, then %d\n", before, count_fds());
        bad = 1;
    }
    return bad;
}
