/* rondo-ras stacks without a debugger: what /proc says of each thread. It stops nothing. */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/thread_text.h"
#include "ras_stacks.h"

#define FRAMES 16 /* of the kernel's stack */

/* "[<0>] futex_wait+0x10/0x20" */
static void print_kernel(pid_t pid, const char *thread)
{
    char text[4096], *rest = NULL;
    int n = 0;

    if (!rd_thread_file(pid, thread, "stack", text, sizeof text)) /* root alone may read it */
        return;
    for (char *line = strtok_r(text, "\n", &rest); line && n < FRAMES; line = strtok_r(NULL, "\n", &rest), n++) {
        const char *name = strstr(line, "] ") ? strstr(line, "] ") + 2 : line;
        printf("    kernel: %.*s\n", (int)strcspn(name, "+"), name);
    }
}

static bool print_thread(pid_t pid, const char *thread)
{
    char text[512];

    if (!rd_thread_text(pid, thread, text, sizeof text))
        return false;
    printf("  %s\n", text);
    print_kernel(pid, thread);
    return true;
}

bool stack_by_proc(pid_t pid)
{
    struct dirent **all = NULL;
    char path[64];
    int shown = 0;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    int n = scandir(path, &all, NULL, versionsort);
    for (int i = 0; i < n; i++) {
        if (isdigit((unsigned char)all[i]->d_name[0]))
            shown += print_thread(pid, all[i]->d_name);
        free(all[i]);
    }
    free(all);
    return shown > 0;
}
