/* A node's shared memory: checking that there is enough, reserving and mapping it. */
#ifndef RD_NODE_NODE_MEM_H
#define RD_NODE_NODE_MEM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/env.h"

#define RD_MEM_TEXT 480

/* What limits memory here, in bytes; UINT64_MAX: nothing, or unknown. */
typedef struct rd_mem_room {
    uint64_t available; /* MemAvailable of /proc/meminfo */
    uint64_t cgroup;    /* the narrowest of this process's cgroup and those above */
    uint64_t file;      /* RLIMIT_FSIZE */
    uint64_t space;     /* RLIMIT_AS, minus what is mapped */
    char where[160];    /* the directory of the narrowest cgroup */
} rd_mem_room_t;

/* Fills `room`. `root` is "" for this machine, or a folder with a recorded machine's /proc and /sys. */
void rd_mem_room(rd_mem_room_t *room, const char *root);

/* Checks whether `bytes` can be reserved, of which `mapped` are mapped here. Returns RONDO_SUCCESS, or
 * RONDO_ERR_NO_MEMORY with a sentence that says how much is needed and how much there is; what it is for, and so how to
 * need less, only the caller knows. `file`: the bytes are also the size of a file. */
rondo_result_t rd_mem_check(const rd_mem_room_t *room, size_t bytes, size_t mapped, int file, char text[RD_MEM_TEXT]);

/* Returns true if the room is so much more than `bytes` that pages need not be reserved before they are used. */
bool rd_mem_ample(const rd_mem_room_t *room, size_t bytes);

/* Sets the size of the memfd and seals it. */
rondo_result_t rd_mem_size(int fd, size_t bytes, char text[RD_MEM_TEXT]);

/* A node's memfd, of `bytes`, of which [own, own + own_bytes) is this rank's segment. */
typedef struct rd_mem_file {
    int fd;
    size_t bytes, own, own_bytes;
    bool huge;  /* huge pages, where there are any */
    bool ample; /* rd_mem_ample: nothing is reserved */
} rd_mem_file_t;

/* Verifies size and seals, maps the whole memfd, and places this rank's segment on its NUMA node: the pages are
 * reserved there, or come there when they are first used. */
rondo_result_t rd_mem_map(const rd_mem_file_t *file, char **base, char text[RD_MEM_TEXT]);

/* Plain memory for ranks that are threads of one process. Its users are counted, and the last one unmaps it. */
rondo_result_t rd_mem_plain(size_t bytes, int huge, char **base, char text[RD_MEM_TEXT]);
int rd_mem_plain_join(char *base, size_t bytes); /* 0, or -1 if there is no such memory in this process */
void rd_mem_plain_leave(char *base);

#endif
