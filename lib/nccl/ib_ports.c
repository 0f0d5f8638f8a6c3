/* NCCL_IB_HCA: which ports of the host's InfiniBand devices data may use. NCCL reads its list as one of beginnings of
 * names, or after "=" of whole names; "^" in front of it excludes those that it has; behind a colon is a port. Of the
 * devices in Linux's folder those ports count that are active and InfiniBand's or Ethernet's, as in NCCL. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "nccl/shim.h"

#define PORTS_MOST 255

/* Tests have a folder of their own. */
__attribute__((weak)) const char *nc_ib_folder(void)
{
    return "/sys/class/infiniband";
}

static bool is_listed(const char *device, int port, const char *list, bool exact)
{
    bool any = false;

    for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',') {
        const size_t n = strcspn(p, ":,");
        const char *number = p[n] == ':' ? p + n + 1 : "";
        const bool named = n && strncmp(device, p, n) == 0 && (!exact || device[n] == '\0');

        any |= n > 0;
        if (named && (!*number || *number == ',' || *number == ':' || atoi(number) == port))
            return true;
    }
    return !any; /* a list without a name has all, as in NCCL */
}

/* Reads the first line of a port's file; "" if there is none. */
static void port_read(const char *device, int port, const char *name, char text[32])
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s/ports/%d/%s", nc_ib_folder(), device, port, name);
    FILE *f = rd_file_read(path);
    if (!f || !fgets(text, 32, f))
        *text = '\0';
    if (f)
        fclose(f);
}

static bool is_active(const char *device, int port)
{
    char state[32], layer[32];

    port_read(device, port, "state", state);
    port_read(device, port, "link_layer", layer);
    return strstr(state, "ACTIVE") && (strncmp(layer, "InfiniBand", 10) == 0 || strncmp(layer, "Ethernet", 8) == 0);
}

/* Ports are counted from 1 on. */
static int ports_of(const char *device)
{
    char state[32] = "-";
    int n = 0;

    while (*state && n < PORTS_MOST)
        port_read(device, ++n, "state", state);
    return *state ? n : n - 1;
}

static int is_device(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

/* Appends a port. Returns false if there is no room. */
static bool port_add(char *text, size_t bytes, const char *device, int port)
{
    const size_t used = strlen(text);
    const int n = snprintf(text + used, bytes - used, "%s%s:%d", used ? "," : "", device, port);

    if (n >= 0 && (size_t)n < bytes - used)
        return true;
    text[used] = '\0';
    return false;
}

const char *nc_ib_ports(const char *names, char *text, size_t bytes)
{
    const bool exclude = *names == '^', exact = names[exclude] == '=';
    const char *list = names + exclude + exact;
    struct dirent **device = NULL;
    int n = scandir(nc_ib_folder(), &device, is_device, versionsort), left_out = 0;
    bool room = true;

    *text = '\0';
    for (int i = 0; i < n; i++) {
        for (int port = 1, most = ports_of(device[i]->d_name); port <= most; port++)
            if (is_active(device[i]->d_name, port)) {
                const bool taken = is_listed(device[i]->d_name, port, list, exact) != exclude;
                left_out += !taken;
                room = room && (!taken || port_add(text, bytes, device[i]->d_name, port));
            }
        free(device[i]);
    }
    free(device);
    return !*text     ? "no active port of an InfiniBand device fits"
           : !room    ? "RONDO_NET has no room for so many ports"
           : left_out ? NULL
                      : "it leaves none of the ports out, and near ones are shared";
}
