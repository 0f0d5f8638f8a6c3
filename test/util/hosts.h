/* Hosts, played by network namespaces. Host k is called "hostk" and has 10.99.7.(k+1) on eth0 and 10.99.8.(k+1) on eth1;
 * each of the two networks is a switch, a bridge in one more namespace, where the addresses end with .254. Nothing of it
 * has a name outside: the namespaces live in descriptors of the process that made them, and are gone with it and what it
 * started, in whatever way it ends. */
#ifndef TEST_HOSTS_H
#define TEST_HOSTS_H

#define HOSTS_MOST 8
#define HOSTS_SWITCH -1 /* stands for the namespace with the two bridges, br0 and br1 */

int hosts_make(int nhosts); /* 0, or -1: not possible here (needs root, `ip` and namespaces) */
void hosts_remove(void);
int hosts_enter(int host); /* this process goes there; 0 or -1 */
/* The shell's exit status of a command that is run there. */
int hosts_command(int host, const char *command);
const char *hosts_path(int host); /* where another process finds the namespace */

#endif
