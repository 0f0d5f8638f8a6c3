/* Records that are held: one descriptor for each, however many communicators the two processes share. */
#include "monitor/held.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "boot/sock.h"
#include "monitor/process_int.h"

typedef struct held {
    int fd, users; /* users: 0: the place is free */
    dev_t device;
    ino_t inode;
} held_t;

static held_t *all;
static int nall;

/* Returns the place of this file, or else a free one; -1: there is no memory. */
static int entry_for(const struct stat *st)
{
    int free_one = -1;

    for (int i = 0; i < nall; i++) {
        if (all[i].users && all[i].device == st->st_dev && all[i].inode == st->st_ino)
            return i;
        if (!all[i].users && free_one < 0)
            free_one = i;
    }
    if (free_one >= 0)
        return free_one;
    int more = nall ? 2 * nall : 16;
    held_t *grown = realloc(all, (size_t)more * sizeof *grown);
    if (!grown)
        return -1;
    for (int i = nall; i < more; i++)
        grown[i] = (held_t){.fd = -1};
    free_one = nall;
    all = grown;
    nall = more;
    return free_one;
}

int rd_held_take(int fd)
{
    struct stat st;
    int at = -1;

    if (fd < 0)
        return -1;
    rd_record_lock();
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        at = entry_for(&st);
    if (at >= 0 && all[at].users++ == 0) {
        all[at].fd = fd;
        all[at].device = st.st_dev;
        all[at].inode = st.st_ino;
        fd = -1;
    }
    rd_record_unlock();
    rd_fd_close(fd);
    return at;
}

void rd_held_job_rank(int held, int *rank, int *size)
{
    rd_reader_t reader;

    *rank = *size = -1;
    rd_record_lock();
    if (held >= 0 && held < nall && all[held].users && !rd_reader_open(&reader, all[held].fd)) {
        *rank = reader.head.job_rank;
        *size = reader.head.job_size;
        rd_reader_close(&reader);
    }
    rd_record_unlock();
}

void rd_held_drop(int held)
{
    int last = -1;

    if (held < 0)
        return;
    rd_record_lock();
    if (held < nall && all[held].users && --all[held].users == 0) {
        last = all[held].fd;
        all[held].fd = -1;
    }
    rd_record_unlock();
    rd_fd_close(last);
}

int rd_held_list(int from, int *fds, int most)
{
    int n = 0, seen = 0;

    for (int i = 0; i < nall && n < most; i++) {
        if (all[i].users && seen++ >= from)
            fds[n++] = all[i].fd;
    }
    return n;
}

bool rd_held_view(rd_view_t *view)
{
    rd_view_stale(view);
    rd_record_lock();
    bool added = !rd_record() || rd_view_add(view, rd_record()->fd);
    for (int i = 0; i < nall && added; i++)
        if (all[i].users)
            added = rd_view_add(view, all[i].fd);
    rd_record_unlock();
    rd_view_drop_stale(view);
    return added;
}

bool rd_held_own(rd_view_t *view)
{
    rd_record_lock();
    bool added = rd_record() && rd_view_add(view, rd_record()->fd);
    rd_record_unlock();
    return added;
}

bool rd_held_again(rd_view_t *view)
{
    return !rd_view_stale(view) || rd_held_view(view);
}

void rd_held_forget(void)
{
    free(all);
    all = NULL;
    nall = 0;
}
