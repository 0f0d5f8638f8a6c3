/* The table of transports: what is built in comes first, a program may add one under a name that is free, and
 * RONDO_TRANSPORT must name one of them: a communicator is refused otherwise, in a sentence that says which there are.
 */
#include <stdlib.h>
#include <string.h>

#include "core/transports.h"
#include "util/check.h"

#define MANY 100

static const rd_transport_ops_t added = {.name = "added", .reach = RD_BETWEEN_NODES};
static const rd_transport_ops_t again = {.name = "shm", .reach = RD_WITHIN_NODE};

static const char *never(void)
{
    return "the fabric is not there";
}
static const rd_transport_ops_t unusable = {.name = "unusable", .reach = RD_BETWEEN_NODES, .unusable = never};

static rondo_result_t create(const char *transport)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_unique_id_t id;
    rondo_comm_t comm = NULL;

    setenv("RONDO_TRANSPORT", transport, 1);
    config.device = RONDO_DEVICE_HOST;
    rondo_result_t result = rondo_unique_id_create(&id);
    if (result == RONDO_SUCCESS)
        result = rondo_comm_create(&comm, 1, &id, 0, &config);
    if (comm)
        rondo_comm_destroy(comm);
    return result;
}

static const char *between(const char *transport, char why[RD_TRANSPORT_WHY])
{
    rd_env_t env = {.debug = RD_LOG_NONE};

    snprintf(env.transport, sizeof env.transport, "%s", transport);
    const rd_transport_ops_t *ops = rd_transport_between(&env, why);
    return ops ? ops->name : NULL;
}

static void names(void)
{
    char why[RD_TRANSPORT_WHY];
    int n = 0;

    CHECK(create("carrier") == RONDO_ERR_INVALID_ARGUMENT, "an unknown name was taken");
    CHECK(strstr(rondo_last_error(NULL), "carrier") && strstr(rondo_last_error(NULL), "shm, cma"), "%s",
          rondo_last_error(NULL));
    CHECK(create("shm") == RONDO_SUCCESS, "%s", rondo_last_error(NULL));
    CHECK(!between("shm", why) && strstr(why, "RONDO_TRANSPORT=shm"), "%s", why);
    CHECK(rd_transport_register(&again) != 0, "a name was taken twice");
    CHECK(rd_transport_register(&unusable) == 0 && rd_transport_register(&added) == 0, "not registered");
    CHECK(rd_transport_named("added") == &added && create("added") == RONDO_SUCCESS, "%s", rondo_last_error(NULL));
    CHECK(between("added", why) && strcmp(between("added", why), "added") == 0, "it is not chosen by its name");
    CHECK(!between("unusable", why) && strcmp(why, never()) == 0, "%s", why);
    const char *named = rd_transport_named("ofi") ? between("ofi", why) : NULL;
    CHECK(!named || strcmp(named, "ofi") == 0, "%s is chosen in place of ofi", named);
    const char *first = rd_transport_named("ucx") ? "ucx" : "added";
    CHECK(between("", why) && strcmp(between("", why), first) == 0, "not the first that can be used: %s", why);
    while (rd_transport_at(n))
        n++;
    CHECK(strcmp(rd_transport_at(0)->name, "shm") == 0 && rd_transport_at(n - 1) == &added, "another order");
}

static void too_many(void)
{
    static rd_transport_ops_t many[MANY];
    static char text[MANY][8];
    int n = 0;

    while (n < MANY) {
        snprintf(text[n], sizeof text[n], "many%d", n);
        many[n] = (rd_transport_ops_t){.name = text[n], .reach = RD_BETWEEN_NODES};
        if (rd_transport_register(&many[n]) != 0)
            break;
        n++;
    }
    CHECK(n > 0 && n < MANY && !rd_transport_named(text[n]), "%d were registered", n);
}

int main(void)
{
    names();
    too_many();
    return failures != 0;
}
