/* rondo_setting_set: a value set by call counts as if it stood in the environment, which stands above it; what does not
 * exist or is not allowed is refused.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"
#include "base/setting.h"
#include "util/check.h"

static const char *algo(void)
{
    static rd_env_t env;

    return rd_env_read(&env) == RONDO_SUCCESS ? env.algo : "an error";
}

/* What is in force can be read back, for every variable that there is. */
static void got(void)
{
    char text[RD_SETTING_BYTES];
    int n = 0;

    for (const char *name; (name = rondo_setting_name(n)) != NULL; n++)
        CHECK(rondo_setting_get(name, text, sizeof text) == RONDO_SUCCESS, "%s: %s", name, rondo_last_error(NULL));
    CHECK(n > 40 && rondo_setting_name(-1) == NULL);
    unsetenv("RONDO_PROTO");
    CHECK(rondo_setting_get("RONDO_TRANSPORT", text, sizeof text) == RONDO_SUCCESS && strcmp(text, "") == 0);
    CHECK(rondo_setting_get("RONDO_CREATE_TIMEOUT_MS", text, sizeof text) == RONDO_SUCCESS);
    CHECK(strcmp(text, "120000") == 0, "%s", text);
    CHECK(rondo_setting_set("RONDO_HOSTID", "host") == RONDO_SUCCESS);
    CHECK(rondo_setting_get("RONDO_HOSTID", text, 5) == RONDO_SUCCESS && strcmp(text, "host") == 0, "%s", text);
    CHECK(rondo_setting_get("RONDO_HOSTID", text, 4) == RONDO_ERR_INVALID_ARGUMENT);
    CHECK(strstr(rondo_last_error(NULL), "takes 5 bytes") != NULL);
    setenv("RONDO_HOSTID", "above", 1);
    CHECK(rondo_setting_get("RONDO_HOSTID", text, sizeof text) == RONDO_SUCCESS && strcmp(text, "above") == 0);
    setenv("RONDO_PROTO", "pull", 1); /* its old name */
    CHECK(rondo_setting_get("RONDO_PROTO", text, sizeof text) == RONDO_SUCCESS && strcmp(text, "cma") == 0);
    setenv("RONDO_SLOT_BYTES", "63", 1);
    strcpy(text, "as it was");
    CHECK(rondo_setting_get("RONDO_SLOT_BYTES", text, sizeof text) == RONDO_ERR_INVALID_ARGUMENT);
    CHECK(strcmp(text, "as it was") == 0);
    CHECK(rondo_setting_get("RONDO_ALOG", text, sizeof text) == RONDO_ERR_INVALID_ARGUMENT);
    CHECK(rondo_setting_get(NULL, text, sizeof text) == RONDO_ERR_INVALID_ARGUMENT);
    CHECK(rondo_setting_get("RONDO_HOSTID", NULL, 9) == RONDO_ERR_INVALID_ARGUMENT);
}

static atomic_int inside; /* the reader is among the values, and stays there for a moment */
static _Thread_local bool is_reader;

int __real_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b)
{
    if (is_reader && __real_strcmp(a, "RONDO_HOSTID") == 0 && __real_strcmp(b, a) == 0) {
        atomic_store(&inside, 1);
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    return __real_strcmp(a, b);
}

static void *reads(void *arg)
{
    char text[RD_SETTING_BYTES];

    unsetenv("RONDO_HOSTID");
    is_reader = true;
    (void)rd_setting_text("RONDO_HOSTID", text);
    return arg;
}

/* A child that is forked while another thread reads a value can read one, too. */
static void forked(void)
{
    char text[RD_SETTING_BYTES];
    pthread_t thread;
    int status = 1;

    CHECK(pthread_create(&thread, NULL, reads, NULL) == 0);
    while (!atomic_load(&inside))
        sched_yield();
    const pid_t child = fork();
    if (child == 0) {
        alarm(10);
        _exit(rd_setting_text("RONDO_HOSTID", text) == NULL);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "the child ended with %#x", status);
    pthread_join(thread, NULL);
}

int main(void)
{
    setenv("RONDO_DEBUG", "none", 1);
    unsetenv("RONDO_ALGO");
    CHECK(strcmp(algo(), "") == 0);
    CHECK(rondo_setting_set("RONDO_ALGO", "ring") == RONDO_SUCCESS);
    CHECK(strcmp(algo(), "ring") == 0);
    CHECK(rondo_setting_set("RONDO_ALGO", "allreduce=tree") == RONDO_SUCCESS);
    CHECK(strcmp(algo(), "allreduce=tree") == 0);
    setenv("RONDO_ALGO", "pat", 1);
    CHECK(strcmp(algo(), "pat") == 0);
    setenv("RONDO_ALGO", "", 1);
    CHECK(strcmp(algo(), "allreduce=tree") == 0);
    CHECK(rondo_setting_set("RONDO_ALGO", NULL) == RONDO_SUCCESS);
    CHECK(strcmp(algo(), "") == 0);

    CHECK(rondo_setting_set("RONDO_ALOG", "ring") == RONDO_ERR_INVALID_ARGUMENT);
    CHECK(strstr(rondo_last_error(NULL), "RONDO_ALOG") != NULL);
    CHECK(rondo_setting_set("RONDO_SLOT_BYTES", "63") == RONDO_ERR_INVALID_ARGUMENT);
    CHECK(strstr(rondo_last_error(NULL), "RONDO_SLOT_BYTES=63") != NULL);
    CHECK(rondo_setting_set(NULL, "1") == RONDO_ERR_INVALID_ARGUMENT);
    got();
    forked();
    return failures != 0;
}
