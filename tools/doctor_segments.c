/* How many TCP segments this host's network has sent, and sent again, from /proc/net/snmp: two lines, of names and of
 * numbers. It is the network of the namespace that this process is in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "doctor_nodes.h"

static bool number_of(const char *names, const char *numbers, const char *wanted, int64_t *number)
{
    char a[1024], b[1024], *at_a = NULL, *at_b = NULL;

    snprintf(a, sizeof a, "%s", names);
    snprintf(b, sizeof b, "%s", numbers);
    char *name = strtok_r(a, " \n", &at_a), *value = strtok_r(b, " \n", &at_b);
    while (name && value && strcmp(name, wanted) != 0) {
        name = strtok_r(NULL, " \n", &at_a);
        value = strtok_r(NULL, " \n", &at_b);
    }
    *number = name && value ? strtoll(value, NULL, 10) : -1;
    return *number >= 0;
}

bool doctor_segments(const char *file, nodes_segments_t *segments)
{
    FILE *f = rd_file_read(file);
    char names[1024] = "", numbers[1024] = "";
    bool found = false;

    while (f && !found && fgets(names, sizeof names, f))
        found = strncmp(names, "Tcp:", 4) == 0 && fgets(numbers, sizeof numbers, f);
    if (f)
        fclose(f);
    return found && number_of(names, numbers, "OutSegs", &segments->sent) &&
           number_of(names, numbers, "RetransSegs", &segments->resent);
}

/* Some are sent again by chance, and of few segments they are a large part. */
double doctor_resent(const nodes_segments_t *before, const nodes_segments_t *after)
{
    const int64_t sent = after->sent - before->sent, resent = after->resent - before->resent;

    return sent > 1000 && resent > 0 ? (double)resent / (double)sent : 0;
}
