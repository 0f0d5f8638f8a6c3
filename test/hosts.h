/* Two hosts, played by network namespaces that two cables (veth pairs) join: 10.99.7.1 and 10.99.7.2 on eth0, 10.99.8.1
 * and 10.99.8.2 on eth1. */
#ifndef TEST_HOSTS_H
#define TEST_HOSTS_H

int hosts_make(void); /* 0, or -1: not possible here (needs root, `ip` and namespaces) */
void hosts_remove(void);
int hosts_enter(int host); /* this process goes there; 0 or -1 */
/* The shell's exit status of a command, whose %s is the name of the host. */
int hosts_command(int host, const char *format);

#endif
