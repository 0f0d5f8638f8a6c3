/* Where ranks meet by IPv6, UCX's tcp is to take that interface's IPv6 address first, unless the user says how, or on
 * which devices. Where they meet by IPv4 or on loopback, nothing is said. */
#include <stdlib.h>
#include <string.h>

#include "ucx/ucx.h"
#include "util/check.h"

static ucs_status_t (*modify)(ucp_config_t *config, const char *name, const char *value);
static char asked[64]; /* for the setting; "": nothing */

static ucs_status_t look(ucp_config_t *config, const char *name, const char *value)
{
    if (strcmp(name, "TCP_AF_PRIO") == 0 || strcmp(name, "AF_PRIO") == 0)
        snprintf(asked, sizeof asked, "%s", value);
    return modify(config, name, value);
}

void rd_ucx_loaded(rd_ucp_t *ucp)
{
    modify = ucp->config_modify;
    ucp->config_modify = look;
}

/* Also makes a context by it: UCX takes the setting. */
static void expect(const char *tls, const char *address, const char *wanted)
{
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_AM};
    rd_ucx_net_t net = {.base = {.nranks = 2}, .keeps = true};
    ucp_config_t *config = NULL;
    ucp_context_h context;
    rd_env_t env;

    check_now = address;
    *asked = 0;
    CHECK(rd_env_read(&env) == RONDO_SUCCESS);
    snprintf(env.ucx_tls, sizeof env.ucx_tls, "%s", tls);
    if (rd_ucp.config_read("RONDO", NULL, &config) != UCS_OK) {
        CHECK(0, "no configuration");
        return;
    }
    CHECK(rd_ucx_settings_put(&net, config, &env, address, 0) == RONDO_SUCCESS);
    CHECK(strcmp(asked, wanted) == 0, "by %s: \"%s\", not \"%s\"", tls, asked, wanted);
    ucs_status_t status = rd_ucp.init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context);
    CHECK(status == UCS_OK, "%s", rd_ucp.status_string(status));
    if (status == UCS_OK)
        rd_ucp.cleanup(context);
    rd_ucp.config_release(config);
}

int main(void)
{
    setenv("RONDO_DEBUG", "none", 0);
    unsetenv("UCX_TCP_AF_PRIO");
    unsetenv("UCX_NET_DEVICES");
    const char *missing = rd_ucx_load();
    if (missing) {
        printf("%s\n", missing);
        return 77;
    }
    expect("tcp", "fd00::1", "inet6,inet");
    expect("tcp", "10.0.0.1", "");
    expect("tcp", "::1", "");
    expect("posix,self", "fd00::1", "");
    setenv("RONDO_UCX_NET_DEVICES", "lo", 1);
    expect("tcp", "fd00::1", "");
    unsetenv("RONDO_UCX_NET_DEVICES");
    setenv("RONDO_UCX_TCP_AF_PRIO", "inet", 1);
    expect("tcp", "fd00::1", "");
    return failures != 0;
}
