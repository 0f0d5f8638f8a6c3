/* Variables that begin with RONDO_ and mean nothing, or have another name now. */
#include "base/env_unknown.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/env_alias.h"
#include "base/error.h"

/* Variables of programs around the library, which it must not call unknown, and UCX's own settings for rondo only:
 * RONDO_UCX_x overrides UCX_x, and UCX itself warns of those that it does not know. */
static const char *const foreign[] = {"RONDO_TEST_", "RONDO_QUICKSTART_", "RONDO_PERF_", "RONDO_UCX_", "RONDO_MPI_"};

/* Returns the number of insertions, deletions and replacements that turn one name into the other. */
static int name_distance(const char *a, const char *b)
{
    int row[64], n = (int)strlen(b);

    if (n > 62)
        return 99;
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (; *a; a++) {
        int diagonal = row[0]++;

        for (int j = 1; j <= n; j++) {
            int replaced = diagonal + (*a != b[j - 1]);
            int shorter = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;

            diagonal = row[j];
            row[j] = replaced < shorter ? replaced : shorter;
        }
    }
    return row[n];
}

static void unknown_name(const char *name)
{
    const char *nearest = NULL, *now = rd_env_alias_now(name);
    int least = 4; /* a name that is farther away is no misspelling */

    if (now != name) {
        const char *said = getenv(now);

        rd_log(NULL, RD_LOG_WARN, "%s is called %s now; the old name %s", name, now,
               said && *said ? "counts for nothing beside it" : "still works");
        return;
    }
    for (int i = 0; rd_env_name(i); i++) {
        int distance = name_distance(name, rd_env_name(i));

        if (distance == 0)
            return;
        if (distance < least) {
            least = distance;
            nearest = rd_env_name(i);
        }
    }
    rd_log(NULL, RD_LOG_WARN,
           "%.100s in the environment means nothing to rondo%s%s%s; rondo-info --env lists what does", name,
           nearest ? ", perhaps " : "", nearest ? nearest : "", nearest ? " was meant" : "");
}

void rd_env_unknown_warn(void)
{
    static atomic_flag done = ATOMIC_FLAG_INIT;
    extern char **environ;

    if (atomic_flag_test_and_set(&done))
        return;
    for (char **e = environ; e && *e; e++) {
        char name[128];
        int known = 0;

        if (strncmp(*e, "RONDO_", 6) != 0)
            continue;
        for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
            known |= strncmp(*e, foreign[i], strlen(foreign[i])) == 0;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*e, "="), *e);
        if (!known)
            unknown_name(name);
    }
    const char *proto = getenv("RONDO_PROTO");
    const char *now = proto ? rd_env_alias_word("RONDO_PROTO", proto) : proto;

    if (now != proto)
        rd_log(NULL, RD_LOG_WARN, "RONDO_PROTO=%s is called %s now; the old word still works", proto, now);
}
