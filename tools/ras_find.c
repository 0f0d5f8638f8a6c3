/* Where records are found: at the descriptors of this user's processes, at their sockets, and in a folder. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monitor/origin.h"
#include "monitor/out.h"
#include "monitor/ras_socket.h"
#include "number.h"
#include "ras.h"

#define ANSWER_MS 300 /* a process that is stopped does not answer */

typedef struct found {
    rd_view_t *view;
    rd_origin_t here;
    bool poor, again; /* again: nothing is added that was not there */
    bool more;        /* it was searched before, and so is not where nothing can be new */
} found_t;

static bool is_stale(const rd_view_t *v, int fd)
{
    struct stat st;

    for (int i = 0; fstat(fd, &st) == 0 && i < v->nprocesses; i++)
        if (v->processes[i].reader.dev == st.st_dev && v->processes[i].reader.ino == st.st_ino)
            return v->processes[i].stale;
    return false;
}

/* Takes over the descriptor. */
static void add(found_t *found, int fd)
{
    if (!found->again || is_stale(found->view, fd))
        found->poor |= !rd_view_add(found->view, fd);
    close(fd);
}

bool ras_is_record(const char *link)
{
    static const char ending[] = ".rondo-record";
    size_t n = strlen(link), e = sizeof ending - 1;

    return strncmp(link, "/memfd:" RD_MONITOR_MEMFD, sizeof "/memfd:" RD_MONITOR_MEMFD - 1) == 0 ||
           (n > e && strcmp(link + n - e, ending) == 0);
}

/* A process has its own record open, and those of its node: so those of the dead are found here, too, and it does not
 * matter whether any thread of it runs. Of n processes there are n * n descriptors, most of which are known. */
static void scan_process(int pid, found_t *found)
{
    char path[64], link[512];
    struct stat st;

    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *d = opendir(path);

    for (struct dirent *e; d && (e = readdir(d));) {
        ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof link - 1);
        if (n <= 0)
            continue;
        link[n] = 0;
        if (!ras_is_record(link) ||
            (fstatat(dirfd(d), e->d_name, &st, 0) == 0 && rd_view_has(found->view, st.st_dev, st.st_ino)))
            continue;
        int fd = openat(dirfd(d), e->d_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd >= 0)
            add(found, fd);
    }
    if (d)
        closedir(d);
}

/* Returns a number that is another one once a communicator has been made since; 0: all have ended, so that the process
 * may have another record by now. */
static uint64_t made(const rd_reader_t *reader)
{
    rd_monitor_comm_t c;
    uint64_t sum = 0;
    bool lives = false;

    for (int e = 0; e < rd_reader_comms(reader); e++)
        if (rd_reader_comm(reader, e, &c)) {
            sum += c.version + 1;
            lives |= c.state != RD_MONITOR_ENDED;
        }
    return lives ? sum : 0;
}

/* A process takes the records of others when a communicator is made, so what it has opened by then is known when it was
 * searched once more. Of n ranks that leaves few descriptors out of n * n. */
static bool has_nothing_new(int pid, const found_t *found)
{
    for (int i = 0; found->more && i < found->view->nprocesses; i++) {
        rd_view_process_t *p = &found->view->processes[i];
        if (p->reader.head.pid != pid || p->reader.head.pid_space != found->here.pid_space || !p->reader.mapped ||
            p->state == RD_VIEW_ENDED || p->state == RD_VIEW_ELSEWHERE)
            continue;
        const uint64_t now = made(&p->reader);
        p->searches = now && p->searched == now ? p->searches + 1 : 0;
        p->searched = now;
        return p->searches > 1;
    }
    return false;
}

static void scan_proc(found_t *found)
{
    DIR *d = opendir("/proc");
    int pid;

    for (struct dirent *e; d && (e = readdir(d));)
        if (number_is(e->d_name, 1, INT32_MAX, &pid) && pid != (int)getpid() && !has_nothing_new(pid, found))
            scan_process(pid, found);
    if (d)
        closedir(d);
}

/* Whoever may write to the folder chooses the name. */
static void say_unreadable(const char *name, const char *why)
{
    char plain[256];

    snprintf(plain, sizeof plain, "%s", name);
    rd_out_plain_text(plain, sizeof plain);
    fprintf(stderr, "rondo-ras: %s cannot be read: %s\n", plain, why);
}

/* A folder in which records are is to be told from one that has all of a job's. */
static void add_file(DIR *folder, const char *name, found_t *found, bool says)
{
    const int unreadable = found->view->unreadable;
    int fd = openat(dirfd(folder), name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0 && says)
        say_unreadable(name, strerror(errno));
    if (fd < 0)
        return;
    add(found, fd);
    if (says && found->view->unreadable > unreadable)
        say_unreadable(name, found->view->why);
}

static void scan_folder(const char *dir, found_t *found, bool says)
{
    DIR *d = opendir(dir);

    for (struct dirent *e; d && (e = readdir(d));)
        if (ras_is_record(e->d_name))
            add_file(d, e->d_name, found, says);
    if (d)
        closedir(d);
}

/* Connects to a socket of this name that belongs to the user in the name: anybody may take a name. */
static int connect_to(unsigned uid, int pid)
{
    struct sockaddr_un name;
    struct ucred peer;
    socklen_t bytes = rd_serve_name(&name, uid, pid), size = sizeof peer;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (struct sockaddr *)&name, bytes) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == uid)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Receives one message. Returns false if nothing more will come. */
static bool receive(int fd, found_t *found)
{
    rd_serve_answer_t answer = {0};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(RD_SERVE_MOST * sizeof(int))];
    } control;
    struct iovec io = {&answer, sizeof answer};
    struct msghdr message = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control};
    struct pollfd p = {.fd = fd, .events = POLLIN};

    if (poll(&p, 1, ANSWER_MS) != 1)
        return false;
    ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    for (struct cmsghdr *head = n > 0 ? CMSG_FIRSTHDR(&message) : NULL; head; head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < (head->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
            int got;
            memcpy(&got, CMSG_DATA(head) + i * sizeof(int), sizeof got);
            add(found, got);
        }
    }
    return n == (ssize_t)sizeof answer && answer.magic == RD_SERVE_MAGIC && answer.version == RD_SERVE_VERSION &&
           answer.status == RD_SERVE_GIVEN && !answer.last;
}

static bool known(const found_t *found, int pid)
{
    const rd_view_t *v = found->view;

    for (int i = 0; i < v->nprocesses; i++) /* a copy that is stale has to be asked for again */
        if (!v->processes[i].stale && v->processes[i].reader.head.pid == pid &&
            v->processes[i].reader.head.pid_space == found->here.pid_space)
            return true;
    return false;
}

static void scan_sockets(found_t *found, int64_t user)
{
    FILE *f = fopen("/proc/net/unix", "re");
    char line[512];

    while (f && fgets(line, sizeof line, f)) {
        const char *at = strstr(line, "@rondo-ras/");
        unsigned uid;
        int pid;
        if (!at || sscanf(at, "@rondo-ras/%u/%d", &uid, &pid) != 2 ||
            (geteuid() != 0 && uid != geteuid() && (int64_t)uid != user) || known(found, pid))
            continue;
        int fd = connect_to(uid, pid);
        for (int i = 0; fd >= 0 && i < 1024 && receive(fd, found); i++)
            continue;
        if (fd >= 0)
            close(fd);
    }
    if (f)
        fclose(f);
}

static int by_pid(const void *a, const void *b)
{
    const rd_monitor_head_t *x = &((const rd_view_process_t *)a)->reader.head,
                            *y = &((const rd_view_process_t *)b)->reader.head;

    return x->pid != y->pid ? (x->pid > y->pid) - (x->pid < y->pid)
                            : (x->made_ns > y->made_ns) - (x->made_ns < y->made_ns);
}

static void scan(found_t *found, const ras_options_t *options)
{
    rd_origin_find(&found->here);
    if (!options->from) {
        scan_proc(found);
        scan_sockets(found, options->user);
    }
    if (options->from || options->dir)
        scan_folder(options->from ? options->from : options->dir, found, options->from && !found->again);
}

bool ras_find(rd_view_t *view, const ras_options_t *options)
{
    found_t found = {.view = view};

    if (options->hosts)
        return ras_find_hosts(view, options);
    memset(view, 0, sizeof *view);
    scan(&found, options);
    if (view->nprocesses)
        qsort(view->processes, (size_t)view->nprocesses, sizeof *view->processes, by_pid);
    return !found.poor && rd_view_look(view, options->job);
}

bool ras_find_again(rd_view_t *view, const ras_options_t *options)
{
    found_t found = {.view = view, .again = true};

    if (rd_view_stale(view))
        scan(&found, options);
    rd_view_drop_stale(view);
    return !found.poor;
}

bool ras_find_more(rd_view_t *view, const ras_options_t *options)
{
    found_t found = {.view = view, .more = true};

    rd_view_stale(view);
    scan(&found, options);
    return !found.poor && rd_view_look(view, 0);
}

int ras_live_process(const rd_view_t *view, int job)
{
    rd_process_stat_t now;
    char number[16];

    for (int i = 0; job && i < view->nprocesses; i++) {
        const rd_monitor_head_t *head = &view->processes[i].reader.head;
        snprintf(number, sizeof number, "%d", head->pid);
        if (view->processes[i].job == job && rd_process_stat(number, &now) && now.started == head->started &&
            !rd_process_over(&now))
            return head->pid;
    }
    return job;
}
