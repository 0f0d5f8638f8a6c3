/* The network interfaces of this host, as rondo-info shows them. */
#ifndef RD_INTERFACES_H
#define RD_INTERFACES_H

#include <net/if.h>

#include "base/env.h"

#define INFO_MOST_INTERFACES 256

typedef struct info_interface {
    char name[IF_NAMESIZE];
    char address[46]; /* IPv4 if it has one, "": none */
    int running;      /* up, and its cable too */
    int loopback;
    int device;          /* stands for a piece of hardware */
    int mbit, mtu, numa; /* -1: unknown */
    int prefix;          /* bits of the network's part of the address; -1: unknown */
} info_interface_t;

int info_interfaces(info_interface_t all[INFO_MOST_INTERFACES]); /* how many */

/* Where ranks meet with these settings: the address, and which of the interfaces has it (-1: none). */
rondo_result_t info_meeting(const rd_env_t *env, const info_interface_t *all, int n, char address[64], int *which);

int info_rails(const rd_env_t *env); /* how many */

#endif
