/* Configs: what an older caller lacks has its default, and what makes no sense is refused. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/comm.h"
#include "core/limits.h"
#include "core/transports.h"
#include "exec/cuda/cuda.h"
#include "rma/rma.h"

#define SHORTEST_CONFIG (offsetof(rondo_config_t, device) + sizeof((rondo_config_t *)NULL)->device)

rondo_config_t rd_config_of(const rondo_config_t *given)
{
    rondo_config_t config = RONDO_CONFIG_INIT;

    if (given) {
        memcpy(&config, given, given->size < sizeof config ? given->size : sizeof config);
        config.size = given->size < SHORTEST_CONFIG ? given->size : sizeof config;
    }
    return config;
}

rondo_result_t rd_comm_config(rondo_config_t *full, const rondo_config_t *given)
{
    const rondo_config_t config = rd_config_of(given);

    if (config.size < SHORTEST_CONFIG)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                        "config->size is %zu: initialise the config with RONDO_CONFIG_INIT", config.size);
    if (config.device < RONDO_DEVICE_AUTO)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                        "config->device is %d: RONDO_DEVICE_AUTO, RONDO_DEVICE_HOST or a device number", config.device);
    if (config.timeout_ms < -1)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "config->timeout_ms is %lld: 0 (never) or milliseconds",
                        (long long)config.timeout_ms);
    if (config.first_timeout_ms < -1 || config.stall_ms < -1)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                        "config->%s is %lld: -1 (the variable's), 0 (never) or milliseconds",
                        config.stall_ms < -1 ? "stall_ms" : "first_timeout_ms",
                        (long long)(config.stall_ms < -1 ? config.stall_ms : config.first_timeout_ms));
    if (config.on_error < -1 || config.on_error > RONDO_ON_ERROR_REVOKE_EXIT)
        return rd_error(
            NULL, RONDO_ERR_INVALID_ARGUMENT,
            "config->on_error is %d: it must be RONDO_ON_ERROR_RETURN, _EXIT, _REVOKE_ALL, _REPORT, _REVOKE_EXIT or -1",
            config.on_error);
    if (config.nan_check < -1 || config.nan_check > RONDO_NAN_FAIL)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                        "config->nan_check is %d: it must be RONDO_NAN_IGNORE, _WARN, _FAIL or -1 (RONDO_NAN_CHECK)",
                        config.nan_check);
    if (config.signals < -1 || config.signals == 0 || config.signals > RD_RMA_SIGNALS_MOST)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "config->signals is %d: 1 to %d, or -1 (the default, %d)",
                        config.signals, RD_RMA_SIGNALS_MOST, RD_RMA_SIGNALS);
    if (config.contexts < -1 || config.contexts == 0 || config.contexts > RD_RMA_CONTEXTS_MOST)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "config->contexts is %d: 1 to %d, or -1 (the default, 1)",
                        config.contexts, RD_RMA_CONTEXTS_MOST);
    if (config.blocks < -1 || config.blocks > RD_ENV_BLOCKS_MOST)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                        "config->blocks is %d: 1 to %d multiprocessors, 0 (all) or -1 (RONDO_CUDA_BLOCKS)",
                        config.blocks, RD_ENV_BLOCKS_MOST);
    if (config.blocks_least < -1 || config.blocks_least > RD_ENV_BLOCKS_MOST)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                        "config->blocks_least is %d: 1 to %d multiprocessors, 0 (what is needed) or -1 "
                        "(RONDO_CUDA_BLOCKS_LEAST)",
                        config.blocks_least, RD_ENV_BLOCKS_MOST);
    if (config.blocks > 0 && config.blocks_least > config.blocks)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "config->blocks_least is %d, more than config->blocks, %d",
                        config.blocks_least, config.blocks);
    if (config.net_channels < -1 || config.net_channels > RD_ENV_PROXIES_MOST)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                        "config->net_channels is %d: 1 to %d proxy channels, 0 (by cores) or -1 (RONDO_PROXY_THREADS)",
                        config.net_channels, RD_ENV_PROXIES_MOST);
    if (config.cta_policy < -1 || config.cta_policy > RONDO_CTA_POLICY_ZERO)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                        "config->cta_policy is %d: RONDO_CTA_POLICY_DEFAULT, _EFFICIENCY, _ZERO or -1 "
                        "(RONDO_CTA_POLICY)",
                        config.cta_policy);
    if (config.traffic_class < -1 || config.traffic_class > 255)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                        "config->traffic_class is %d: 0 to 255, or -1 (RONDO_TRAFFIC_CLASS)", config.traffic_class);
    if (config.network && (!*config.network || strlen(config.network) >= sizeof((rd_env_t *)NULL)->ucx_tls))
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                        "config->network has %zu characters: 1 to %zu, as \"tcp\", or NULL (RONDO_UCX_TLS)",
                        strlen(config.network), sizeof((rd_env_t *)NULL)->ucx_tls - 1);
    *full = config;
    full->timeout_ms = rd_limit_bounded(config.timeout_ms);
    full->first_timeout_ms = rd_limit_bounded(config.first_timeout_ms);
    full->stall_ms = rd_limit_bounded(config.stall_ms);
    return RONDO_SUCCESS;
}

void rd_config_over(rd_env_t *env, const rondo_config_t *config)
{
    static const char *const nan_checks[] = {"0", "warn", "fail"};

    if (config->stall_ms >= 0)
        env->stall_ms = config->stall_ms;
    if (config->nan_check >= 0)
        snprintf(env->nan_check, sizeof env->nan_check, "%s", nan_checks[config->nan_check]);
    if (config->cta_policy >= 0)
        rd_cta_policy_set(env, config->cta_policy);
    if (config->blocks >= 0)
        env->cuda_blocks = config->blocks;
    if (config->blocks_least >= 0)
        env->cuda_blocks_least = config->blocks_least;
    if (config->net_channels >= 0)
        env->proxy_threads = config->net_channels;
    if (config->traffic_class >= 0)
        env->traffic_class = config->traffic_class;
    if (config->network)
        snprintf(env->ucx_tls, sizeof env->ucx_tls, "%s", config->network);
}

rondo_result_t rd_comm_check(const rondo_config_t *given)
{
    rondo_config_t config;
    rondo_result_t result;
    rd_env_t env;
    int device;

    if ((result = rd_env_read(&env)) || (result = rd_transport_check(&env, NULL)) ||
        (result = rd_comm_config(&config, given)))
        return result;
    return rd_cuda_device(config.device, &device);
}
