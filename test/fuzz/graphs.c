/* Fuzz target: NCCL's XML of graphs, which RONDO_GRAPH_FILE names. A file is refused with a sentence that names the
 * variable, or has a ring of GPUs of which none is there twice; as an order of ranks or devices it is one, or says what
 * does not fit. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "topo/ring_file.h"

#define GPUS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void order(const rd_ring_read_t *ring, const int *numbers, int n, bool ranked)
{
    int place[GPUS];
    unsigned seen = 0;

    if (rd_ring_order(ring, numbers, n, ranked, place))
        return;
    for (int i = 0; i < n; i++)
        seen |= 1u << place[i];
    if (seen != (1u << n) - 1)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const int numbers[GPUS] = {0, 1, 2, 3, 4, 5, 6, 7};
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    rd_ring_read_t ring;
    char path[64];

    if (fd < 0 || (bytes && write(fd, data, bytes) != (ssize_t)bytes))
        exit(1);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (rd_ring_read(&ring, path, "RONDO_GRAPH_FILE") != RONDO_SUCCESS) {
        if (!strstr(rd_thread_error(), "RONDO_GRAPH_FILE"))
            abort();
    } else {
        if (ring.n < 1 || ring.n > RD_GRAPH_MOST)
            abort();
        for (int i = 0; i < ring.n; i++)
            for (int k = 0; k < i; k++)
                if (ring.ranked ? ring.gpu[i].rank == ring.gpu[k].rank : ring.gpu[i].dev == ring.gpu[k].dev)
                    abort();
        for (int n = 1; n <= GPUS; n++) {
            order(&ring, numbers, n, false);
            order(&ring, numbers, n, true);
        }
        free(ring.gpu);
    }
    close(fd);
    return 0;
}
