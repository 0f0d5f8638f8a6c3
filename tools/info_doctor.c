/* rondo-info doctor: tries what a job will need, here and now. Each check does the thing itself, by the library's own
 * code where there is any, and says in words what it found; what is wrong comes with what mends it.
 *
 *   ok      it works
 *   note    it works, but a job may be slower than it could be, or could not do something that it may never need
 *   WRONG   a job would fail; the exit status is 1
 *
 * An area is a function in a file of its own (doctor_host.c, doctor_net.c, doctor_gpu.c) and a line of the list below.
 * With --network it is the nodes of a job that are looked at, in place of this host (doctor_nodes.c).
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "info.h"
#include "progress.h"

static const struct {
    const char *title;
    void (*look)(const rd_env_t *env);
} areas[] = {
    {"host", info_doctor_host},
    {"network", info_doctor_net},
    {"GPUs", info_doctor_gpu},
};

static int found[3];
static progress_t progress; /* of areas; it stands below what has been found */

void info_found(info_verdict_t verdict, const char *what, const char *remedy, const char *format, ...)
{
    static const char *const words[] = {"ok", "note", "WRONG"};
    va_list args;

    found[verdict]++;
    progress_clear(&progress);
    printf("  %-6s %-16s ", words[verdict], what);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    if (remedy)
        printf("  %-6s %-16s -> %s\n", "", "", remedy);
    fflush(stdout);
    progress_show(&progress);
}

int info_found_sum(void)
{
    printf("\n%d checked: %d ok, %d to note, %d wrong\n", found[INFO_WELL] + found[INFO_NOTE] + found[INFO_WRONG],
           found[INFO_WELL], found[INFO_NOTE], found[INFO_WRONG]);
    return found[INFO_WRONG] != 0;
}

int info_doctor(const rd_env_t *env, int argc, char **argv)
{
    if (argc > 1 || (argc == 1 && strcmp(argv[0], "--network") != 0)) {
        fprintf(stderr, "rondo-info doctor: \"%s\" is not an option; there is --network\n", argv[argc - 1]);
        return 2;
    }
    if (argc == 1)
        return info_doctor_nodes(env);
    rd_log_set_level(RD_LOG_NONE); /* what fails is said here, once */
    progress_begin(&progress, "rondo-info doctor", "areas", (int)(sizeof areas / sizeof areas[0]));
    for (size_t i = 0; i < sizeof areas / sizeof areas[0]; i++) {
        progress_clear(&progress);
        printf("%s\n", areas[i].title);
        fflush(stdout);
        progress_show(&progress);
        areas[i].look(env);
        progress_step(&progress);
    }
    return info_found_sum();
}
