/* The machine that a result belongs to, in few words, and how much of it we hold. */
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "perf.h"

/* The value of the first line of a file in /proc that begins with `key`, up to its end. */
static bool proc_value(const char *path, const char *key, char *value, size_t size)
{
    char line[256];
    bool found = false;
    FILE *file = fopen(path, "r");

    while (file && !found && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');

        if (!colon || strncmp(line, key, strlen(key)) != 0)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        snprintf(value, size, "%.*s", (int)strcspn(colon, "\n\"\\"), colon);
        found = true;
    }
    if (file)
        fclose(file);
    return found;
}

void machine_describe(machine_t *machine)
{
    struct utsname name;
    cpu_set_t allowed[16]; /* of 1,024 processors each: Linux counts up to 8,192 */

    *machine = (machine_t){.cpu = "unknown", .system = "unknown"};
    (void)proc_value("/proc/cpuinfo", "model name", machine->cpu, sizeof machine->cpu);
    if (uname(&name) == 0)
        snprintf(machine->system, sizeof machine->system, "%.32s %.60s %.20s", name.sysname, name.release,
                 name.machine);
    machine->cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    machine->allowed = sched_getaffinity(0, sizeof allowed, allowed) == 0 ? CPU_COUNT_S(sizeof allowed, allowed) : 0;
    machine->memory_mb = sysconf(_SC_PHYS_PAGES) / 1024 * (sysconf(_SC_PAGESIZE) / 1024);
}

static double proc_bytes(const char *path, const char *key, double otherwise)
{
    char text[64];
    double kb;

    if (!proc_value(path, key, text, sizeof text) || sscanf(text, "%lf", &kb) != 1)
        return otherwise;
    return kb * 1024;
}

double machine_id(void)
{
    char text[64] = "";
    uint64_t hash = 14695981039346656037u;
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");

    if (file && !fgets(text, sizeof text, file))
        *text = '\0';
    if (file)
        fclose(file);
    for (const char *c = text; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    return (double)(hash >> 11); /* a double holds so many bits */
}

double machine_free(void)
{
    return proc_bytes("/proc/meminfo", "MemAvailable:", 1e18);
}

double machine_held(void)
{
    return proc_bytes("/proc/self/smaps_rollup", "Pss:", 0);
}
