/* Fuzz target: the files that RONDO_TUNE and RONDO_TOPO_FILE name. A file is taken or refused with a sentence that names
 * the variable; what was taken comes back the same when it is written and read again. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cost/prices.h"
#include "topo/topo_gpu.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* A file without a name in the file system, open as *f; its path. */
static const char *file_make(FILE **f, const void *data, size_t bytes)
{
    static char path[64];
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    *f = fd < 0 ? NULL : fdopen(fd, "w+");
    if (!*f)
        exit(1);
    if (bytes && fwrite(data, 1, bytes, *f) != bytes)
        exit(1);
    fflush(*f);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

static int refused(rondo_result_t result, const char *variable)
{
    if (result != RONDO_SUCCESS && !strstr(rd_thread_error(), variable))
        abort();
    return result != RONDO_SUCCESS;
}

static void prices(const uint8_t *data, size_t bytes)
{
    rd_prices_t first = *rd_prices_builtin(0), second = first;
    rd_log_ctx_t ctx = {0};
    FILE *f;

    if (!refused(rd_prices_read(&first, file_make(&f, data, bytes), &ctx), "RONDO_TUNE")) {
        FILE *again;
        const char *path = file_make(&again, "", 0);
        rd_prices_write(&first, again);
        fflush(again);
        if (refused(rd_prices_read(&second, path, &ctx), "RONDO_TUNE"))
            abort();
        fclose(again);
    }
    fclose(f);
}

static void machine(const uint8_t *data, size_t bytes)
{
    static rd_gpu_topo_t first, second;
    FILE *f;

    memset(&first, 0, sizeof first);
    memset(&second, 0, sizeof second);
    if (!refused(rd_gpu_topo_read(&first, file_make(&f, data, bytes)), "RONDO_TOPO_FILE") && first.count > 0) {
        FILE *again;
        const char *path = file_make(&again, "", 0);
        rd_gpu_topo_write(&first, again);
        fflush(again);
        if (refused(rd_gpu_topo_read(&second, path), "RONDO_TOPO_FILE") || second.count != first.count)
            abort();
        rd_gpu_path(&second, 0, second.count - 1);
        fclose(again);
    }
    fclose(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    prices(data, bytes);
    machine(data, bytes);
    return 0;
}
