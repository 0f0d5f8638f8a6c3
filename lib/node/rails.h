/* Which network device a rank takes of those that its node has: each serves as many ranks as the others, and among such
 * shares each rank has a device as near as there is one left for it. Near is, for a rank that moves a GPU's data, the
 * way over PCIe from the GPU to the device (a switch, a host bridge, a NUMA node); for others, the NUMA node that the
 * rank is bound to. All ranks of a node find the same shares, from what they have told each other at creation. */
#ifndef RD_NODE_RAILS_H
#define RD_NODE_RAILS_H

#include "node/node.h"
#include "topo/topo_gpu.h"

/* Returns the index in a list as "mlx5_0:1,mlx5_1:1" of this rank's device. An entry may be a folder of /sys, too. An
 * empty list: this rank's number on its node, by which ranks take in turn what a library finds. `sys` is /sys. */
int rd_node_rail(const rd_node_t *node, const char *list, const char *sys);
/* Copies that entry of the list, counted round and round, as far as there is room. */
void rd_node_rail_name(const char *list, int rail, char *name, size_t bytes);
/* The share itself: the index of the device of rank `self` of this node. near[r * ndevices + d]: how near device `d` is
 * to rank `r`. Returns -1 if there is no memory. */
int rd_node_share(const rd_near_t *near, int ndevices, int nranks, int self);

#endif
