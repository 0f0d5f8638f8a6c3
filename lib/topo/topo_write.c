/* XML into files: see topo_write.h. A file is made beside its place, with the process's number, and renamed. */
#include "topo/topo_write.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "topo/graph.h"

/* Is it a plain file, or none yet? Others (/dev/stdout, a pipe) are written as they stand. */
static bool is_plain(const char *file)
{
    FILE *f = rd_file_read(file);
    bool plain = !f || fseek(f, 0, SEEK_END) == 0;

    if (f)
        fclose(f);
    return plain && strncmp(file, "/dev/", 5) != 0;
}

rondo_result_t rd_xml_save(const rd_xml_t *root, const char *file)
{
    char beside[320];
    const bool plain = is_plain(file);
    rd_fd_writes_t quiet;
    int error = 0;

    snprintf(beside, sizeof beside, plain ? "%.255s.%d.%lx" : "%.255s", file, (int)getpid(), (unsigned long)&error);
    FILE *f = fopen(beside, "we");
    if (!f)
        return rd_error(NULL, RONDO_ERR_SYSTEM, "%.255s cannot be written: %s", file, rd_fd_strerror(errno));
    rd_fd_writes_begin(&quiet);
    errno = 0;
    rd_xml_write(root, f);
    if (ferror(f) | (fclose(f) != 0))
        error = errno ? errno : EIO;
    rd_fd_writes_end(&quiet, error);
    if (!error && plain && rename(beside, file) != 0)
        error = errno;
    if (!error)
        return RONDO_SUCCESS;
    if (plain)
        (void)unlink(beside);
    return rd_error(NULL, RONDO_ERR_SYSTEM, "%.255s cannot be written: %s", file, rd_fd_strerror(error));
}

void rd_topo_dump(const rd_env_t *env, int rank, const rd_log_ctx_t *ctx)
{
    rd_xml_t *system;

    if (!env->topo_dump_file[0] || rank != env->topo_dump_rank)
        return;
    rondo_result_t result = rd_graph_xml(&system, env->topo_file, "RONDO_TOPO_FILE");
    if (result == RONDO_SUCCESS) {
        result = rd_xml_save(system, env->topo_dump_file);
        rd_xml_free(system);
    }
    if (result == RONDO_SUCCESS)
        rd_log(ctx, RD_LOG_INFO, "this machine's topology is in %s (RONDO_TOPO_DUMP_FILE)", env->topo_dump_file);
    else
        rd_log(ctx, RD_LOG_WARN, "RONDO_TOPO_DUMP_FILE: %s", rd_thread_error());
}
