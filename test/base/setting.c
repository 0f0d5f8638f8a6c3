/* rondo_setting_set: a value set by call counts as if it stood in the environment, which stands above it; what does not
 * exist or is not allowed is refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"

static int bad;

static void expect(int line, int good)
{
    if (!good) {
        printf("test/base/setting.c:%d: not so\n", line);
        bad = 1;
    }
}
#define EXPECT(condition) expect(__LINE__, condition)

static const char *algo(void)
{
    static rd_env_t env;

    return rd_env_read(&env) == RONDO_SUCCESS ? env.algo : "an error";
}

int main(void)
{
    setenv("RONDO_DEBUG", "none", 1);
    unsetenv("RONDO_ALGO");
    EXPECT(strcmp(algo(), "") == 0);
    EXPECT(rondo_setting_set("RONDO_ALGO", "ring") == RONDO_SUCCESS);
    EXPECT(strcmp(algo(), "ring") == 0);
    EXPECT(rondo_setting_set("RONDO_ALGO", "allreduce=tree") == RONDO_SUCCESS);
    EXPECT(strcmp(algo(), "allreduce=tree") == 0);
    setenv("RONDO_ALGO", "pat", 1);
    EXPECT(strcmp(algo(), "pat") == 0);
    setenv("RONDO_ALGO", "", 1);
    EXPECT(strcmp(algo(), "allreduce=tree") == 0);
    EXPECT(rondo_setting_set("RONDO_ALGO", NULL) == RONDO_SUCCESS);
    EXPECT(strcmp(algo(), "") == 0);

    EXPECT(rondo_setting_set("RONDO_ALOG", "ring") == RONDO_ERR_INVALID_ARGUMENT);
    EXPECT(strstr(rondo_last_error(NULL), "RONDO_ALOG") != NULL);
    EXPECT(rondo_setting_set("RONDO_SLOT_BYTES", "63") == RONDO_ERR_INVALID_ARGUMENT);
    EXPECT(strstr(rondo_last_error(NULL), "RONDO_SLOT_BYTES=63") != NULL);
    EXPECT(rondo_setting_set(NULL, "1") == RONDO_ERR_INVALID_ARGUMENT);
    return bad;
}
