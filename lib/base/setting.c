/* Values for this process's variables that a program sets by a call: the environment takes precedence. A copy is handed
 * out, so that a variable may be set while another thread makes a communicator. */
#include "base/setting.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/env_alias.h"
#include "base/fork.h"

typedef struct setting {
    struct setting *next;
    char name[64], value[RD_SETTING_BYTES];
} setting_t;

static setting_t *settings;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const rd_fork_handlers_t at_fork = {.lock = &lock};

const char *rd_setting_text(const char *name, char *text)
{
    const char *value = getenv(name), *old = rd_env_alias_old(name), *found = NULL;

    if ((!value || !*value) && old)
        value = getenv(old);
    if (value && *value)
        return value;
    rd_fork_register(RD_FORK_SETTINGS, &at_fork);
    pthread_mutex_lock(&lock);
    for (setting_t *s = settings; s && !found; s = s->next)
        if (strcmp(s->name, name) == 0 && *s->value)
            found = strcpy(text, s->value);
    pthread_mutex_unlock(&lock);
    return found;
}

rondo_result_t rondo_setting_set(const char *name, const char *value)
{
    rondo_result_t result = rd_env_check(name, value);
    setting_t *s;

    if (result != RONDO_SUCCESS)
        return result;
    name = rd_env_alias_now(name);
    rd_fork_register(RD_FORK_SETTINGS, &at_fork);
    pthread_mutex_lock(&lock);
    for (s = settings; s && strcmp(s->name, name) != 0;)
        s = s->next;
    if (!s && (s = calloc(1, sizeof *s)) != NULL) {
        snprintf(s->name, sizeof s->name, "%s", name);
        s->next = settings;
        settings = s;
    }
    if (s)
        snprintf(s->value, sizeof s->value, "%s", value ? value : "");
    pthread_mutex_unlock(&lock);
    return s ? RONDO_SUCCESS : rd_error(NULL, RONDO_ERR_NO_MEMORY, "no memory for a setting");
}

const char *rondo_setting_name(int index)
{
    return rd_env_name(index);
}

rondo_result_t rondo_setting_get(const char *name, char *text, size_t bytes)
{
    char kept[RD_SETTING_BYTES];
    const char *value;
    rondo_result_t result;

    if (!text || bytes == 0)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "rondo_setting_get: there is no room for the value");
    if ((result = rd_env_check(name, NULL)) != RONDO_SUCCESS)
        return result;
    name = rd_env_alias_now(name);
    if ((value = rd_setting_text(name, kept)) != NULL) {
        if ((result = rd_env_check(name, value)) != RONDO_SUCCESS)
            return result;
        value = rd_env_alias_word(name, value);
    }
    if (!value)
        value = rd_env_default(name);
    if (strlen(value) >= bytes)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "rondo_setting_get: %s takes %zu bytes, and text has %zu",
                        name, strlen(value) + 1, bytes);
    strcpy(text, value);
    return RONDO_SUCCESS;
}
