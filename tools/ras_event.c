/* See ras_event.h. */
#include "ras_event.h"

#include <stdio.h>
#include <time.h>

#include "ras.h"

/* "2026-11-28 13:30:00.123", or with `zone` as ISO 8601 has it, "2026-11-28T13:30:00.123+0100". */
static void print_time(int64_t unix_ns, bool zone)
{
    time_t seconds = (time_t)(unix_ns / 1000000000);
    char text[32] = "?", offset[16] = "";
    struct tm local;

    if (localtime_r(&seconds, &local)) {
        strftime(text, sizeof text, zone ? "%Y-%m-%dT%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &local);
        strftime(offset, sizeof offset, "%z", &local);
    }
    printf("%s.%03d%s", text, (int)(unix_ns / 1000000 % 1000), zone ? offset : "");
}

static void print_json(const ras_event_t *e)
{
    printf("{\"time\": \"");
    print_time(e->unix_ns, true);
    printf("\", \"event\": \"%s\", \"job\": %d", e->name, e->job);
    if (e->communicator) {
        printf(", \"communicator\": ");
        ras_print_json(e->communicator);
        printf(", \"id\": \"%016llx\"", (unsigned long long)e->id);
    }
    if (e->rank >= 0)
        printf(", \"rank\": %d", e->rank);
    if (e->pid) {
        printf(", \"pid\": %d, \"host\": ", e->pid);
        ras_print_json(e->host);
    }
    printf(", \"status\": %d, \"text\": ", e->status);
    ras_print_json(e->text);
    printf("}\n");
}

void ras_event_print(const ras_event_t *e, bool json)
{
    if (json) {
        print_json(e);
        return;
    }
    print_time(e->unix_ns, false);
    printf(" job %d: ", e->job);
    if (e->communicator)
        printf("'%s': ", e->communicator);
    printf("%s\n", e->text);
}
