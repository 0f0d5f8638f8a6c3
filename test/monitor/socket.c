/* The socket at which records are given out: a client of this user gets descriptors that it can read and not write;
 * others get none, but members of a group that was named; clients that are silent, talk, or come by the thousand
 * neither stop the program nor leave anything in it, and who asks properly afterwards is answered.
 */
#include <grp.h>
#include <poll.h>
#include <rondo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/ras_socket.h"
#include "monitor/read.h"
#include "util/check.h"
#include "util/harness.h"

#define CROWD 1000
#define NOBODY 65534
#define GROUP 54321

static rondo_comm_t comm;

static void use(void)
{
    float a = 1, b = 0;

    CHECK(rondo_allreduce(&a, &b, 1, RONDO_FLOAT32, RONDO_SUM, comm, NULL) == RONDO_SUCCESS && b == 1, "%s",
          rondo_last_error(comm));
}

static int connect_to(int pid)
{
    struct sockaddr_un name;
    socklen_t bytes = rd_serve_name(&name, (unsigned)geteuid(), pid);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (struct sockaddr *)&name, bytes) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Takes the answer. Returns the status, or -1 if there was none; *got is the first descriptor, or -1. */
static int answer(int fd, int *got)
{
    rd_serve_answer_t a = {0};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(RD_SERVE_MOST * sizeof(int))];
    } control;
    struct iovec io = {&a, sizeof a};
    struct msghdr message = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control};
    struct pollfd p = {.fd = fd, .events = POLLIN};

    *got = -1;
    if (poll(&p, 1, 10000) != 1 || recvmsg(fd, &message, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof a ||
        a.magic != RD_SERVE_MAGIC)
        return -1;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (head && head->cmsg_type == SCM_RIGHTS)
        memcpy(got, CMSG_DATA(head), sizeof *got);
    CHECK((a.status == RD_SERVE_GIVEN) == (a.count > 0) && (*got >= 0) == (a.count > 0), "status %u with %u", a.status,
          a.count);
    return (int)a.status;
}

/* Asks until it is answered: those before it may still have their time. */
static void ask(void)
{
    int got = -1, status = RD_SERVE_BUSY;
    rd_reader_t r;

    for (int i = 0; i < 1000 && status == RD_SERVE_BUSY; i++) {
        int fd = connect_to((int)getpid());
        status = fd < 0 ? -1 : answer(fd, &got);
        close(fd);
        if (status == RD_SERVE_BUSY)
            poll(NULL, 0, 10);
    }
    CHECK(status == RD_SERVE_GIVEN && got >= 0, "status %d", status);
    if (got < 0)
        return;
    const char *why = rd_reader_open(&r, got);
    CHECK(!why && r.head.pid == getpid(), "%s", why ? why : "another process's");
    if (!why)
        rd_reader_close(&r);
    CHECK(write(got, "x", 1) < 0 && ftruncate(got, 0) != 0, "it could be changed");
    CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, got, 0) == MAP_FAILED, "it could be mapped for writing");
    close(got);
}

static void crowd(void)
{
    static int fds[CROWD];
    static const char talk[] = "STATUS\nSET FORMAT json\n\xff\xfe half a li";
    int before = test_count_entries("/proc/self/fd");
    pid_t child = fork();
    int status;

    if (child == 0) { /* its connections are the crowd's: the program has its own ends alone */
        int parent = (int)getppid(), got, n = 0;
        for (int i = 0; i < CROWD; i++) {
            fds[i] = connect_to(parent);
            n += fds[i] >= 0;
            if (fds[i] >= 0 && i % 2)
                (void)!send(fds[i], talk, sizeof talk, MSG_NOSIGNAL);
            if (i % 7 == 0 && fds[i] >= 0 && answer(fds[i], &got) < 0)
                _exit(2);
        }
        _exit(n > 0 ? 0 : 1);
    }
    while (waitpid(child, &status, WNOHANG) == 0)
        use();
    CHECK(status == 0, "the crowd ended with 0x%x", status);
    ask();
    CHECK(test_count_entries("/proc/self/fd") <= before + RD_SERVE_CLIENTS, "descriptors are left over");
}

static void stranger(void)
{
    int status;
    pid_t child = geteuid() == 0 ? fork() : -1;

    if (child < 0) {
        printf("not root: no other user tries\n");
        return;
    }
    if (child == 0) {
        struct sockaddr_un name;
        socklen_t bytes = rd_serve_name(&name, 0, (int)getppid());
        int got = -1, fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0 || connect(fd, (struct sockaddr *)&name, bytes) != 0)
            _exit(3);
        _exit(answer(fd, &got) == RD_SERVE_REFUSED && got < 0 ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0, "another user's client ended with 0x%x", status);
}

/* Asks as another user, of that group and with that one more. Returns the status, or -1. */
static int ask_as(gid_t own, gid_t more)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        struct sockaddr_un name;
        socklen_t bytes = rd_serve_name(&name, 0, (int)getppid());
        int got = -1, fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (setgroups(1, &more) != 0 || setgid(own) != 0 || setuid(NOBODY) != 0 ||
            connect(fd, (struct sockaddr *)&name, bytes) != 0)
            _exit(100);
        status = answer(fd, &got);
        _exit((status == RD_SERVE_GIVEN) == (got >= 0) ? status : 101);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* RONDO_RAS_GROUP: nothing, a number, a name, and a name that is none. */
static void members(rondo_comm_t *made)
{
    static const struct {
        const char *group;
        gid_t own, more;
        int want;
    } tries[] = {{"54321", GROUP, NOBODY, RD_SERVE_GIVEN},
                 {"54321", NOBODY, GROUP, RD_SERVE_GIVEN},
                 {"54321", NOBODY, NOBODY, RD_SERVE_REFUSED},
                 {"", GROUP, GROUP, RD_SERVE_REFUSED},
                 {"", 0, 0, RD_SERVE_REFUSED},
                 {"root", 0, NOBODY, RD_SERVE_GIVEN},
                 {"no such", 0, GROUP, RD_SERVE_REFUSED},
                 {"54321x", GROUP, GROUP, RD_SERVE_REFUSED}};
    rondo_unique_id_t id;

    if (geteuid() != 0)
        return;
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        int got = RD_SERVE_BUSY;
        setenv("RONDO_RAS_GROUP", tries[i].group, 1);
        CHECK(rondo_unique_id_create(&id) == RONDO_SUCCESS && rondo_comm_create(made, 1, &id, 0, NULL) == RONDO_SUCCESS,
              "%s", rondo_last_error(NULL));
        for (int k = 0; k < 1000 && got == RD_SERVE_BUSY; k++)
            got = ask_as(tries[i].own, tries[i].more);
        CHECK(got == tries[i].want, "RONDO_RAS_GROUP=%s: one of the groups %d and %d gets %d, want %d", tries[i].group,
              (int)tries[i].own, (int)tries[i].more, got, tries[i].want);
        CHECK(rondo_comm_destroy(*made) == RONDO_SUCCESS, "destroy");
    }
    unsetenv("RONDO_RAS_GROUP");
}

int main(void)
{
    struct rlimit limit = {4096, 4096};
    rondo_unique_id_t id;
    int before;

    test_begin("monitor/socket", 60);
    setrlimit(RLIMIT_NOFILE, &limit);
    before = test_count_entries("/proc/self/fd");
    for (int i = 0; i < 2; i++) {
        if (rondo_unique_id_create(&id) != RONDO_SUCCESS ||
            rondo_comm_create(&comm, 1, &id, 0, NULL) != RONDO_SUCCESS) {
            printf("%s\n", rondo_last_error(NULL));
            return 1;
        }
        use();
        ask();
        stranger();
        crowd();
        stranger();
        ask();
        use();
        CHECK(rondo_comm_destroy(comm) == RONDO_SUCCESS, "destroy");
        CHECK(connect_to((int)getpid()) < 0, "the socket is still there");
        CHECK(test_count_entries("/proc/self/fd") == before, "descriptors are left over");
    }
    members(&comm);
    printf("%d failures\n", failures);
    return failures != 0;
}
