/* rondo_setting_set: a value set by call counts as if it stood in the environment, which stands above it; what does not
 * exist or is not allowed is refused.
 */
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "util/check.h"

static const char *algo(void)
{
    static rd_env_t env;

    return rd_env_read(&env) == RONDO_SUCCESS ? env.algo : "an error";
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
    return failures != 0;
}
