/* rondo-info doctor --network: a pair of nodes is tried in a process of its own, which is this program again, and is
 * ended when it takes too long. UCX's tcp waits in its call for a connection that it makes, for two minutes where a
 * firewall swallows the packets, and there is no other way out of that call.
 *
 * The id goes to that process, and what it has found comes back, by a pair of sockets in the place of its standard
 * input; network libraries print to the standard output. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/wait.h"
#include "doctor_nodes.h"

#define MADE_MS 13000 /* DOCTOR_CREATE_MS, and what a process and a network library take to start and to end */
#define DONE_MS 28000 /* all messages, and the end of the communicator */
#define ENDED_MS 3000 /* the end of a process that has told all */

typedef struct news {
    pair_result_t result;
    bool over;
} news_t;

/* ---- the process */

static void tell_news(const pair_result_t *result, bool over)
{
    news_t news;

    memset(&news, 0, sizeof news);
    news.result = *result;
    news.over = over;
    if (send(STDIN_FILENO, &news, sizeof news, MSG_NOSIGNAL) != (ssize_t)sizeof news)
        _exit(1); /* nobody hears it any more */
}

static void tell(const pair_result_t *so_far)
{
    tell_news(so_far, false);
}

int doctor_pair_child(int side)
{
    rondo_unique_id_t id;
    pair_result_t result;

    if (recv(STDIN_FILENO, &id, sizeof id, 0) != (ssize_t)sizeof id) {
        fprintf(stderr, "rondo-info doctor: --pair is for processes that the doctor starts itself\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    rd_log_set_level(RD_LOG_NONE); /* what fails is said by the doctor, once */
    (void)rondo_setting_set("RONDO_DEBUG", "none");
    doctor_pair_try(&id, side, &result, tell);
    tell_news(&result, true);
    return 0;
}

/* ---- who starts it */

/* 1: news; 0: it has ended; -1: nothing within the limit. */
static int hear(int fd, int64_t until_ms, news_t *news)
{
    struct pollfd p = {fd, POLLIN, 0};
    int ready;

    do {
        int64_t left = until_ms - rd_clock_ms();
        ready = poll(&p, 1, left > 0 ? (int)left : 0);
    } while (ready < 0 && errno == EINTR);
    if (ready == 0)
        return -1;
    return recv(fd, news, sizeof *news, 0) == (ssize_t)sizeof *news;
}

/* Returns this side of the sockets, or -1 with errno. */
static int begin(const rondo_unique_id_t *id, int side, pid_t *pid)
{
    char number[2] = {(char)('0' + side), 0}, *argv[] = {"rondo-info", "doctor", "--pair", number, NULL};
    posix_spawn_file_actions_t actions;
    int ends[2], error = posix_spawn_file_actions_init(&actions);

    if (error == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        error = errno;
        posix_spawn_file_actions_destroy(&actions);
    }
    if (error) {
        errno = error;
        return -1;
    }
    if (send(ends[0], id, sizeof *id, MSG_NOSIGNAL) != (ssize_t)sizeof *id)
        error = errno;
    error = error ? error : posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    error = error ? error : posix_spawn(pid, "/proc/self/exe", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (error) {
        close(ends[0]);
        errno = error;
        return -1;
    }
    return ends[0];
}

static void end(pid_t pid, int fd)
{
    close(fd);
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

void doctor_pair(const rondo_unique_id_t *id, int side, pair_result_t *out)
{
    news_t news = {.result = {.stage = WAY_NO_START}};
    int64_t until_ms = rd_clock_ms() + MADE_MS;
    pid_t pid;
    int fd = begin(id, side, &pid), heard = 1;

    if (fd < 0) {
        snprintf(news.result.text, WAY_TEXT, "no process can be started that tries it: %s", strerror(errno));
        *out = news.result;
        return;
    }
    for (bool made = false; !news.over && (heard = hear(fd, until_ms, &news)) == 1; made = true)
        until_ms = made ? until_ms : rd_clock_ms() + DONE_MS;
    if (heard < 0 && news.result.stage == WAY_NO_START)
        snprintf(news.result.text, WAY_TEXT,
                 "the network library does not come back from its start: nothing answers a connection that it makes, "
                 "as where a firewall drops it");
    else if (heard == 0)
        snprintf(news.result.text, WAY_TEXT, "the process that tried it has ended");
    if (news.over) { /* its exit may still have to hand on what the other side waits for */
        news_t none;
        (void)hear(fd, rd_clock_ms() + ENDED_MS, &none);
    }
    end(pid, fd);
    *out = news.result;
}
