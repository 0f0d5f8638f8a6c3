/* See origin.h. */
#include "monitor/origin.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

void rd_origin_find(rd_origin_t *origin)
{
    struct stat st;
    FILE *f = rd_file_read("/proc/sys/kernel/random/boot_id");

    memset(origin, 0, sizeof *origin);
    if (f && !fgets(origin->boot, sizeof origin->boot, f))
        origin->boot[0] = 0;
    if (f)
        fclose(f);
    origin->boot[strcspn(origin->boot, "\n")] = 0;
    gethostname(origin->host, sizeof origin->host - 1);
    if (stat("/proc/self/ns/pid", &st) == 0)
        origin->pid_space = (uint64_t)st.st_ino;
}

/* The name, in field 2, may contain anything: fields are counted from its last parenthesis. They are 3, 14, 15, 20 and
 * 22. */
bool rd_process_stat(const char *who, rd_process_stat_t *p)
{
    char path[64], line[1024] = "";
    unsigned long long user, system;

    snprintf(path, sizeof path, "/proc/%s/stat", who);
    FILE *f = rd_file_read(path);
    if (!f)
        return false;
    size_t n = fread(line, 1, sizeof line - 1, f);
    fclose(f);
    line[n] = 0;
    const char *at = strrchr(line, ')');
    errno = 0;
    if (!at || sscanf(at + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %d %*d %llu",
                      &p->state, &user, &system, &p->threads, &p->started) != 5)
        return false;
    p->user_system = user + system;
    return true;
}

uint64_t rd_process_queued(const char *who, uint64_t *ran)
{
    char path[64];
    uint64_t sum = 0;

    *ran = 0;
    snprintf(path, sizeof path, "/proc/%s/task", who);
    DIR *tasks = opendir(path);
    if (!tasks)
        return 0;
    for (struct dirent *d; (d = readdir(tasks)) != NULL;) {
        char file[sizeof path + 280];
        unsigned long long on_core = 0, queued = 0;
        if (d->d_name[0] == '.')
            continue;
        snprintf(file, sizeof file, "%s/%s/schedstat", path, d->d_name);
        FILE *f = rd_file_read(file);
        if (f && fscanf(f, "%llu %llu", &on_core, &queued) == 2) {
            *ran += on_core;
            sum += queued;
        }
        if (f)
            fclose(f);
    }
    closedir(tasks);
    return sum;
}
