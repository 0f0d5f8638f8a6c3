/* See interfaces.h. What the kernel has in /sys of each is what decides how fast it is. */
#include "interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot/sock.h"
#include "info.h"

static int number(const char *name, const char *file)
{
    char path[128];

    snprintf(path, sizeof path, "/sys/class/net/%s/%s", name, file);
    return info_number_in(path);
}

static info_interface_t *find(info_interface_t *all, int *n, const struct ifaddrs *i)
{
    char path[128];

    for (int k = 0; k < *n; k++)
        if (strcmp(all[k].name, i->ifa_name) == 0)
            return &all[k];
    if (*n == INFO_MOST_INTERFACES)
        return NULL;
    info_interface_t *one = &all[(*n)++];
    unsigned up = IFF_UP | IFF_RUNNING;
    memset(one, 0, sizeof *one);
    snprintf(one->name, sizeof one->name, "%s", i->ifa_name);
    snprintf(path, sizeof path, "/sys/class/net/%s/device", one->name);
    one->running = (i->ifa_flags & up) == up;
    one->loopback = (i->ifa_flags & IFF_LOOPBACK) != 0;
    one->device = access(path, F_OK) == 0;
    one->prefix = -1;
    one->mbit = number(one->name, "speed");
    one->mtu = number(one->name, "mtu");
    one->numa = number(one->name, "device/numa_node");
    return one;
}

/* The ones of a netmask, which stand in front. */
static int ones(const struct sockaddr *mask)
{
    const unsigned char *bytes;
    int n = 0, most;

    if (!mask)
        return -1;
    most = mask->sa_family == AF_INET ? 4 : 16;
    bytes = mask->sa_family == AF_INET ? (const unsigned char *)&((const struct sockaddr_in *)mask)->sin_addr
                                       : (const unsigned char *)&((const struct sockaddr_in6 *)mask)->sin6_addr;
    for (int i = 0; i < most; i++)
        n += __builtin_popcount(bytes[i]);
    return n;
}

int info_interfaces(info_interface_t all[INFO_MOST_INTERFACES])
{
    struct ifaddrs *list;
    int n = 0;

    if (getifaddrs(&list) != 0)
        return 0;
    for (struct ifaddrs *i = list; i; i = i->ifa_next) {
        info_interface_t *one = find(all, &n, i);
        const struct sockaddr *sa = i->ifa_addr;

        if (one && sa && sa->sa_family == AF_INET) {
            one->prefix = ones(i->ifa_netmask);
            inet_ntop(AF_INET, &((const struct sockaddr_in *)sa)->sin_addr, one->address, sizeof one->address);
        } else if (one && sa && sa->sa_family == AF_INET6 && !*one->address &&
                   !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)sa)->sin6_addr)) {
            one->prefix = ones(i->ifa_netmask);
            inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)sa)->sin6_addr, one->address, sizeof one->address);
        }
    }
    freeifaddrs(list);
    return n;
}

rondo_result_t info_meeting(const rd_env_t *env, const info_interface_t *all, int n, char address[64], int *which)
{
    rd_addr_t chosen;
    rondo_result_t result = rd_addr_choose(&chosen, env);

    *which = -1;
    if (result != RONDO_SUCCESS)
        return result;
    inet_ntop(chosen.family == 6 ? AF_INET6 : AF_INET, chosen.ip, address, 64);
    for (int i = 0; i < n && *which < 0; i++)
        if (strcmp(all[i].address, address) == 0)
            *which = i;
    return RONDO_SUCCESS;
}

int info_rails(const rd_env_t *env)
{
    int n = 1;

    for (const char *c = env->net; *c; c++)
        n += *c == ',';
    return n;
}
