/* rondo_setting_set: a value set by call counts as if it stood in the environment, which stands above it; what does not
 * exist or is not allowed is refused.
 */
#include <stdlib.h>
#include <string.h>

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
    return failures != 0;
}
