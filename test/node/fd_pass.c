/* Strangers at the socket over which a node's descriptors pass: silence, garbage, a member of another job, a rank that
 * is not expected. They get no descriptor; the real members get the memory and a pidfd of everybody, and nothing that
 * was opened stays open. */
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
static rd_pass_t pass = {.nranks = RANKS, .stop = &stop};
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

/* 0: got all; 1: got nothing; 2: something between. */
static int follow(int rank, const rd_pass_t *as)
{
    int memory = -1, pidfd[RANKS] = {-1, -1, -1, -1}, known = 0;
    rd_pass_t p = *as;
    p.rank = rank;
    int fd = rd_pass_connect(name);
    if (fd < 0 || rd_pass_follow(&p, fd, name, &memory, pidfd, NULL) != RONDO_SUCCESS)
        return 2;
    for (int r = 0; r < RANKS; r++) {
        known += pidfd[r] >= 0;
        rd_fd_close(pidfd[r]);
    }
    if (memory < 0)
        return known ? 2 : 1;
    char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    int right = at != MAP_FAILED && strcmp(at, "shared") == 0;
    rd_fd_close(memory);
    return right && known == RANKS - 1 ? 0 : 2; /* rank 3 never comes */
}

/* At the listener before it opens, and until the members are through. */
static void *pending(void *arg)
{
    char text[500];
    int kind = (int)(intptr_t)arg, fd = rd_pass_connect(name);
    memset(text, kind, sizeof(text));
    if (fd >= 0 && kind)
        send(fd, text, sizeof(text), MSG_NOSIGNAL);
    pthread_barrier_wait(&come);
    pthread_barrier_wait(&led);
    rd_fd_close(fd);
    return NULL;
}

static int lead(int listener)
{
    unsigned char expected[RANKS] = {0, 1, 1, 0};
    int pidfd[RANKS] = {-1, -1, -1, -1}, bad = 0;
    pthread_t t[STRANGERS];
    int memory = memfd_create("test", MFD_CLOEXEC);
    if (memory < 0 || ftruncate(memory, 4096) != 0 || pwrite(memory, "shared", 7, 0) != 7)
        return 1;
    pthread_barrier_init(&come, NULL, STRANGERS + 1);
    pthread_barrier_init(&led, NULL, STRANGERS + 1);
    for (int i = 0; i < STRANGERS; i++)
        pthread_create(&t[i], NULL, pending, (void *)(intptr_t)(i % 3));
    pthread_barrier_wait(&come);
    bad |= rd_pass_lead(&pass, listener, name, expected, memory, pidfd, NULL) != RONDO_SUCCESS;
    for (int r = 0; r < RANKS; r++) {
        bad |= (pidfd[r] >= 0) != (r < 3);
        rd_fd_close(pidfd[r]);
    }
    pthread_barrier_wait(&led);
    for (int i = 0; i < STRANGERS; i++)
        pthread_join(t[i], NULL);
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
