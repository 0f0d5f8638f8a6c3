/* Which network device a rank takes of those that its node has: each serves as many ranks as the others, and among such
 * shares each rank has a device on its own NUMA node if there is one left for it. All ranks of a node find the same
 * shares, from what they have told each other at creation. */
#ifndef RD_NODE_RAILS_H
#define RD_NODE_RAILS_H

#include "node/node.h"

/* Returns the index in a list as "mlx5_0:1,mlx5_1:1" of this rank's device. An empty list: this rank's number on its
 * node, by which ranks take in turn what a library finds. `sys` is /sys. */
int rd_node_rail(const rd_node_t *node, const char *list, const char *sys);
/* The share itself, by NUMA nodes, -1 if unknown: the index of the device of rank `self` of this node. */
int rd_node_share(const int *device_numa, int ndevices, const int *rank_numa, int nranks, int self);

#endif
