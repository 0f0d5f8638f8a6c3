/* The host's network interfaces, of which NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY choose one. */
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "nccl/shim.h"

/* Matches NCCL's list of prefixes of names; after "=" it has whole names, and "^" before all excludes those it has. */
static bool name_fits(const char *name, const char *list)
{
    int exclude = *list == '^', exact, found = 0;

    list += exclude;
    exact = *list == '=';
    list += exact;
    for (const char *p = list; *p && !found; p += strcspn(p, ","), p += *p == ',') {
        size_t n = strcspn(p, ",");
        found = n && strncmp(name, p, n) == 0 && (!exact || name[n] == '\0');
    }
    return exclude ? !found : found;
}

/* A list that excludes leaves loopback, and what Docker makes on each host for itself, in: they count if nothing else
 * does, or no other host would be reached. (NCCL takes whichever comes first; it avoids both if there is no list.) */
static bool is_last(const struct ifaddrs *i, const char *names)
{
    return names && *names == '^' && ((i->ifa_flags & IFF_LOOPBACK) != 0 || strncmp(i->ifa_name, "docker", 6) == 0);
}

int nc_address_find(const char *names, int family, char *text, size_t bytes)
{
    struct ifaddrs *all;
    int best = 0;

    if (getifaddrs(&all) != 0)
        return 0;
    for (struct ifaddrs *i = all; i; i = i->ifa_next) {
        int kind = i->ifa_addr ? i->ifa_addr->sa_family : 0, fit = kind == AF_INET ? 2 : 1;
        socklen_t length = kind == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);

        if ((kind != AF_INET && kind != AF_INET6) || (family && kind != family) || !(i->ifa_flags & IFF_UP))
            continue;
        if (names ? !name_fits(i->ifa_name, names) : (i->ifa_flags & IFF_LOOPBACK) != 0)
            continue;
        if (kind == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)(void *)i->ifa_addr)->sin6_addr))
            continue;
        fit += is_last(i, names) ? 0 : 2;
        if (fit > best && getnameinfo(i->ifa_addr, length, text, (socklen_t)bytes, NULL, 0, NI_NUMERICHOST) == 0)
            best = fit;
    }
    freeifaddrs(all);
    return best;
}
