/* rondo-info doctor: tries what a job will need, here and now. Each check does the thing itself, by the library's own
 * code where there is any, and says in words what it found; what is wrong comes with what mends it.
 *
 *   ok      it works
 *   note    it works, but a job may be slower than it could be, or could not do something that it may never need
 *   WRONG   a job would fail; the exit status is 1
 *
 * An area is a function in a file of its own (doctor_host.c, doctor_net.c, doctor_gpu.c) and a line of the list below.
 * With --network it is the nodes of a job that are looked at, in place of this host (doctor_nodes.c). With --json what
 * is found is one document of JSON (doctor_json.c).
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "doctor_json.h"
#include "doctor_nodes.h"
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
    char text[4096];
    va_list args;

    found[verdict]++;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (doctor_json_is_on()) {
        doctor_json_finding(verdict, what, text, remedy);
        return;
    }
    progress_clear(&progress);
    printf("  %-6s %-16s %s\n", words[verdict], what, text);
    if (remedy)
        printf("  %-6s %-16s -> %s\n", "", "", remedy);
    fflush(stdout);
    progress_show(&progress);
}

int info_found_sum(void)
{
    if (doctor_json_is_on()) {
        doctor_json_end(found);
        return found[INFO_WRONG] != 0;
    }
    printf("\n%d checked: %d ok, %d to note, %d wrong\n", found[INFO_WELL] + found[INFO_NOTE] + found[INFO_WRONG],
           found[INFO_WELL], found[INFO_NOTE], found[INFO_WRONG]);
    return found[INFO_WRONG] != 0;
}

/* The areas in lines, with the progress below them. */
static void look_in_lines(const rd_env_t *env)
{
    progress_begin(&progress, "rondo-info doctor", "areas", (int)(sizeof areas / sizeof areas[0]));
    for (size_t i = 0; i < sizeof areas / sizeof areas[0]; i++) {
        progress_clear(&progress);
        printf("%s\n", areas[i].title);
        fflush(stdout);
        progress_show(&progress);
        areas[i].look(env);
        progress_step(&progress);
    }
}

int info_doctor(const rd_env_t *env, int argc, char **argv)
{
    bool network = false, json = false;

    if (argc == 2 && strcmp(argv[0], "--pair") == 0)
        return doctor_pair_child(strcmp(argv[1], "0") != 0);
    for (int i = 0; i < argc; i++) {
        network = network || strcmp(argv[i], "--network") == 0;
        json = json || strcmp(argv[i], "--json") == 0;
        if (strcmp(argv[i], "--network") != 0 && strcmp(argv[i], "--json") != 0) {
            fprintf(stderr, "rondo-info doctor: \"%s\" is not an option; there are --network and --json\n", argv[i]);
            return 2;
        }
    }
    if (network)
        return info_doctor_nodes(env, json);
    rd_log_set_level(RD_LOG_NONE); /* what fails is said here, once */
    if (json)
        doctor_json_begin(false);
    else
        look_in_lines(env);
    for (size_t i = 0; json && i < sizeof areas / sizeof areas[0]; i++) {
        doctor_json_area(areas[i].title);
        areas[i].look(env);
    }
    return info_found_sum();
}
