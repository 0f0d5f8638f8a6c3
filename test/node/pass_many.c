/* Many ranks of a node at once: more than a listener has places for, all connected before the first of them says a
 * word; more than the queue of its socket takes; and while as many descriptors are under way as their user may have.
 * Every one gets the memory and a pidfd of every other. */
#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boot/listener.h"
#include "node/fd_pass.h"
#include "util/check.h"

#define MOST 100
#define NOBODY 65534
#define FEW 256 /* descriptors */

static rd_stop_t stop;
static rd_pass_t pass = {.stop = &stop, .brought = -1};
static unsigned char name[RD_NODE_NAME];
static int there[2], go[2]; /* a byte of each member that has connected, and one for each that may go on */

static void say(int pipe, int times)
{
    for (char byte = 1; times > 0; times--)
        if (write(pipe, &byte, 1) != 1)
            exit(1);
}

static void hear(int pipe)
{
    char byte;

    if (read(pipe, &byte, 1) != 1)
        exit(1);
}

/* `last`: tells all to go on once the leader has dropped its connection. */
static int follow(int rank, bool last)
{
    int memory = -1, pidfd[MOST], known = 0, fd = rd_pass_connect(name);
    struct pollfd p = {.fd = fd, .events = POLLIN};

    memset(pidfd, 0xff, sizeof pidfd);
    pass.rank = rank;
    say(there[1], 1);
    if (fd < 0)
        return 1;
    if (last && poll(&p, 1, -1) == 1)
        say(go[1], pass.nranks - 1);
    hear(go[0]);
    if (rd_pass_follow(&pass, fd, name, &memory, pidfd, NULL) != RONDO_SUCCESS || memory < 0)
        return 2;
    for (int r = 0; r < pass.nranks; r++)
        known += pidfd[r] >= 0;
    return known == pass.nranks ? 0 : 3;
}

/* Ranks from 1 on connect one after the other. `queue`: the length of the socket's, 0: as it is. */
static int begin(int nranks, int queue, int last)
{
    int listener = rd_pass_listen(name);

    if (listener < 0 || pipe(there) != 0 || pipe(go) != 0 || (queue && listen(listener, queue) != 0))
        exit(1);
    pass.nranks = nranks;
    for (int r = 1; r < nranks; r++) {
        if (fork() == 0) {
            alarm(50);
            _exit(follow(r, r == last));
        }
        hear(there[0]);
    }
    return listener;
}

static void lead(int listener)
{
    unsigned char expected[MOST];
    int pidfd[MOST], memory = memfd_create("test", MFD_CLOEXEC), status;

    memset(expected, 1, sizeof expected);
    memset(pidfd, 0xff, sizeof pidfd);
    expected[0] = 0;
    CHECK(memory >= 0 && rd_pass_lead(&pass, listener, name, expected, memory, pidfd, NULL) == RONDO_SUCCESS);
    rd_fd_close(listener); /* else who got nothing would go on asking */
    for (int r = 0; r < pass.nranks; r++) {
        CHECK(pidfd[r] >= 0, "rank %d has not come", r);
        rd_fd_close(pidfd[r]);
    }
    while (wait(&status) > 0)
        CHECK(status == 0, "a member: status %d", status);
    close(memory);
    for (int i = 0; i < 2; i++) {
        close(there[i]);
        close(go[i]);
    }
}

/* Those whom the leader drops first are all it drops. */
static void more_than_places(void)
{
    check_now = "more than there are places";
    lead(begin(MOST, 0, MOST - 1 - RD_LISTENER_MOST));
}

static void longer_than_queue(void)
{
    check_now = "more than the queue takes";
    int listener = begin(20, 7, 0);
    say(go[1], 19);
    lead(listener);
}

/* Returns the last errno. */
static int send_many(int to)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(64 * sizeof(int))];
    } control;
    char byte = 0;
    struct iovec io = {&byte, 1};
    struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes};
    int fds[64];

    for (int i = 0; i < 64; i++)
        fds[i] = STDERR_FILENO;
    for (int i = 0; i < 2 * FEW / 64; i++) {
        rd_fd_attach(&message, fds, 64);
        if (sendmsg(to, &message, MSG_DONTWAIT) != 1)
            return errno;
    }
    return 0;
}

static void *take_them(void *arg)
{
    int *pair = arg;

    usleep(300000); /* a leader that does not wait has failed long ago */
    close(pair[0]);
    close(pair[1]);
    return NULL;
}

/* Of a user who may not do everything, by a process of its own. */
static int under_way(void)
{
    struct rlimit few = {FEW, FEW};
    pthread_t taker;
    int pair[2];

    check_now = "as many descriptors under way as there may be";
    if (geteuid() == 0 && (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0)) {
        printf("%s: not tried, for this process cannot be another user's\n", check_now);
        return 0;
    }
    int listener = begin(4, 0, 0);
    if (setrlimit(RLIMIT_NOFILE, &few) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        exit(1);
    if (send_many(pair[0]) != ETOOMANYREFS)
        printf("%s: the kernel does not count them for this user\n", check_now);
    if (pthread_create(&taker, NULL, take_them, pair) != 0)
        exit(1);
    say(go[1], 3);
    lead(listener);
    pthread_join(taker, NULL);
    return failures;
}

int main(void)
{
    int status;

    alarm(60);
    if (sodium_init() < 0)
        return 1;
    randombytes_buf(&pass.creds, sizeof pass.creds);
    setvbuf(stdout, NULL, _IOLBF, 0);
    more_than_places();
    longer_than_queue();
    if (fork() == 0)
        _exit(under_way() != 0);
    if (wait(&status) < 0 || status != 0)
        failures++;
    printf("pass_many: %d failures\n", failures);
    return failures != 0;
}
