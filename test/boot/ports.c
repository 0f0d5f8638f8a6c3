/* Where the bootstrap listens: on the address it advertises and no other, at a port of RONDO_PORTS; a range that is
 * used up, an interface that is not there, are errors that name the variable. Descriptors are not inherited by exec,
 * and closed in a forked child. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boot/boot.h"
#include "boot/id.h"

static int failures;

static void expect(int good, const char *what)
{
    if (good)
        return;
    printf("failed: %s (%s)\n", what, rd_thread_error());
    failures++;
}

static int port_of(const rd_addr_t *addr)
{
    return addr->port[0] << 8 | addr->port[1];
}

/* A range of three ports that nobody uses now. */
static int free_range(rd_env_t *env)
{
    for (int first = 20000 + (int)getpid() % 20000; first < 60000; first += 3) {
        int fds[3] = {-1, -1, -1}, free = 1;
        for (int i = 0; i < 3; i++) {
            rd_addr_t addr = rd_addr_loopback(4);
            env->port_first = env->port_last = first + i;
            free &= rd_sock_listen(&fds[i], &addr, env, NULL) == RONDO_SUCCESS;
        }
        for (int i = 0; i < 3; i++)
            rd_fd_close(fds[i]);
        if (free)
            return first;
    }
    return 0;
}

static void ports(rd_env_t env)
{
    int fds[3], seen = 0, extra, first = free_range(&env);
    env.port_first = first;
    env.port_last = first + 2;
    for (int i = 0; i < 3; i++) {
        rd_addr_t addr = rd_addr_loopback(4), bound;
        expect(rd_sock_listen(&fds[i], &addr, &env, NULL) == RONDO_SUCCESS, "a port of the range");
        expect(rd_addr_local(fds[i], &bound) == 0 && rd_addr_same_host(&bound, &addr), "listens where it says");
        seen |= 1 << (port_of(&addr) - first);
        expect(fcntl(fds[i], F_GETFD) & FD_CLOEXEC, "close on exec");
    }
    expect(seen == 7, "all ports of the range are used");
    rd_addr_t addr = rd_addr_loopback(4);
    expect(rd_sock_listen(&extra, &addr, &env, NULL) == RONDO_ERR_SYSTEM, "a range that is used up");
    expect(strstr(rd_thread_error(), "RONDO_PORTS") != NULL, "the error names the variable");
    for (int i = 0; i < 3; i++)
        rd_fd_close(fds[i]);
}

static void interfaces(rd_env_t env)
{
    rd_addr_t addr;
    snprintf(env.iface, sizeof(env.iface), "lo");
    expect(rd_addr_choose(&addr, &env) == RONDO_SUCCESS && rd_addr_is_loopback(&addr), "an interface by name");
    snprintf(env.iface, sizeof(env.iface), "127.0.0.1");
    expect(rd_addr_choose(&addr, &env) == RONDO_SUCCESS && rd_addr_is_loopback(&addr), "an interface by address");
    snprintf(env.iface, sizeof(env.iface), "nosuch0");
    expect(rd_addr_choose(&addr, &env) == RONDO_ERR_INVALID_ARGUMENT, "an interface that is not there");
    expect(strstr(rd_thread_error(), "RONDO_IFACE=nosuch0") != NULL, "the error names it");
}

static void fork_closes(rd_env_t env)
{
    rd_addr_t addr = rd_addr_loopback(4);
    int fd, status = 1;
    expect(rd_sock_listen(&fd, &addr, &env, NULL) == RONDO_SUCCESS, "listen");
    if (fork() == 0)
        _exit(fcntl(fd, F_GETFD) != -1 || errno != EBADF);
    wait(&status);
    expect(status == 0, "closed in a forked child");
    expect(fcntl(fd, F_GETFD) != -1, "still open here");
    rd_fd_close(fd);
}

/* The rendezvous of an id that nobody uses ends with the next one that is used, or with the process; a forked child can
 * make ids of its own. */
static void ids_unused(rd_env_t env)
{
    rondo_unique_id_t id;
    rd_id_t open;
    int status = 1;
    snprintf(env.iface, sizeof(env.iface), "lo");
    for (int i = 0; i < 3; i++)
        expect(rd_boot_id_create(&id, &env) == RONDO_SUCCESS, "an id");
    expect(rd_id_unpack(&open, &id, NULL) == RONDO_SUCCESS && rd_addr_is_loopback(&open.addr),
           "names where it listens");
    if (fork() == 0) {
        alarm(20);
        exit(rd_boot_id_create(&id, &env) != RONDO_SUCCESS);
    }
    wait(&status);
    expect(status == 0, "a child makes an id, and ends");
}

int main(void)
{
    rd_env_t env;
    alarm(30);
    if (rd_env_read(&env) != RONDO_SUCCESS)
        return 1;
    rd_log_set_level(RD_LOG_NONE);
    env.port_first = env.port_last = 0;
    env.iface[0] = 0;
    ports(env);
    interfaces(env);
    fork_closes(env);
    ids_unused(env);
    return failures != 0;
}
