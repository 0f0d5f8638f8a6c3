/* Which address NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY choose, on hosts whose interfaces are made up. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "nccl/shim.h"

typedef struct made_up {
    const char *name, *address;
} made_up_t;

static const made_up_t *host; /* its interfaces, up to one without a name */
static struct ifaddrs all[8];
static union {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
} address[8];

__attribute__((visibility("default"))) int getifaddrs(struct ifaddrs **out)
{
    int n = 0;

    memset(all, 0, sizeof all);
    memset(address, 0, sizeof address);
    for (; host[n].name; n++) {
        bool six = strchr(host[n].address, ':') != NULL;
        address[n].any.sa_family = six ? AF_INET6 : AF_INET;
        inet_pton(six ? AF_INET6 : AF_INET, host[n].address,
                  six ? (void *)&address[n].six.sin6_addr : (void *)&address[n].four.sin_addr);
        all[n].ifa_name = (char *)host[n].name;
        all[n].ifa_addr = &address[n].any;
        all[n].ifa_flags = IFF_UP | (strcmp(host[n].name, "lo") == 0 ? IFF_LOOPBACK : 0);
        all[n].ifa_next = host[n + 1].name ? &all[n + 1] : NULL;
    }
    *out = n ? all : NULL;
    return 0;
}

__attribute__((visibility("default"))) void freeifaddrs(struct ifaddrs *list)
{
    (void)list;
}

static int failures;

static void check(const char *names, int family, const char *wanted)
{
    char text[64] = "";

    if (nc_address_find(names, family, text, sizeof text) == 0)
        snprintf(text, sizeof text, "none");
    if (strcmp(text, wanted) == 0)
        return;
    printf("NCCL_SOCKET_IFNAME=%s, family %d: %s, not %s\n", names ? names : "(unset)", family, text, wanted);
    failures++;
}

int main(void)
{
    static const made_up_t node[] = {{"lo", "127.0.0.1"}, {"docker0", "172.17.0.1"}, {"eth0", "10.0.0.1"},
                                     {"eth1", "fd00::1"}, {"ib0", "10.1.0.1"},       {NULL, NULL}};
    static const made_up_t bare[] = {{"lo", "127.0.0.1"}, {"lo", "::1"}, {NULL, NULL}};

    host = node;
    check("eth", 0, "10.0.0.1");
    check("ib,eth", 0, "10.0.0.1"); /* the first of the host's that fits */
    check("=ib0", 0, "10.1.0.1");
    check("=ib", 0, "none");
    check("lo", 0, "127.0.0.1");
    check("docker", 0, "172.17.0.1");
    check("^eth0", 0, "10.1.0.1");
    check("^eth0,ib", 0, "fd00::1");
    check("^eth,ib", 0, "127.0.0.1");
    check("^=eth0", 0, "10.1.0.1");
    check("^ib", AF_INET6, "fd00::1");
    check(NULL, AF_INET6, "fd00::1");
    host = bare;
    check("^eth", 0, "127.0.0.1");
    check("eth", 0, "none");
    return failures != 0;
}
