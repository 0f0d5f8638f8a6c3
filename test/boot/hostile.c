/* Strangers at the rendezvous and at the ranks' own listeners: port scans, silence, garbage, another job, another
 * version, a right hello with a wrong proof, a reflected proof, half a hello byte by byte. They are there before the
 * first rank comes and all the time while 5 ranks join, exchange, and make a second communicator on a listener that
 * they have besieged. The ranks notice nothing. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boot/boot_int.h"
#include "util/gate.h"

#define RANKS 5
#define IDLE 100 /* more than a listener has places */

typedef enum { SCAN, GARBAGE, OTHER_JOB, OTHER_VERSION, WRONG_PROOF, REFLECT, HALF, NUM_ATTACKS } attack_t;

typedef struct siege {
    rd_addr_t addr;
    unsigned char job[16]; /* seen on the wire: it is no secret */
    atomic_int over, attacks;
    pthread_t thread;
    int idle[IDLE];
} siege_t;

/* A connection that blocks, or -1. */
static int dial(const rd_addr_t *addr)
{
    int fd = rd_sock_connect(addr), flags = 0;
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    if (fd < 0 || poll(&p, 1, 1000) != 1 || (p.revents & POLLERR)) {
        rd_fd_close(fd);
        return -1;
    }
    flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    struct timeval patience = {0, 20000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    return fd;
}

static void attack(siege_t *s, attack_t kind)
{
    unsigned char text[4096], answer[RD_HELLO + RD_PROOF];
    rd_creds_t creds;
    rd_auth_t a;
    rd_hello_t mine = {.purpose = RD_FOR_MEETING, .rank = 1, .nranks = RANKS};
    int fd = dial(&s->addr);
    if (fd < 0)
        return;
    randombytes_buf(&creds, sizeof(creds));
    if (kind != OTHER_JOB)
        memcpy(creds.job, s->job, sizeof(creds.job));
    rd_auth_begin(&a, &creds, 0, &s->addr, sizeof(s->addr), &mine);
    randombytes_buf(text, sizeof(text));
    if (kind == OTHER_VERSION)
        a.hello[0][4]++;
    if (kind == GARBAGE)
        send(fd, text, sizeof(text), MSG_NOSIGNAL);
    else if (kind != SCAN)
        send(fd, a.hello[0], kind == HALF ? 30 : RD_HELLO, MSG_NOSIGNAL);
    if ((kind == WRONG_PROOF || kind == REFLECT) && recv(fd, answer, sizeof(answer), MSG_WAITALL) == sizeof(answer))
        send(fd, kind == REFLECT ? answer + RD_HELLO : text, RD_PROOF, MSG_NOSIGNAL);
    if (kind == WRONG_PROOF) /* and goes on as if it had been let in */
        send(fd, text, sizeof(text), MSG_NOSIGNAL);
    rd_fd_close(fd);
    atomic_fetch_add(&s->attacks, 1);
}

static void *besiege(void *arg)
{
    siege_t *s = arg;
    for (unsigned i = 0; !atomic_load(&s->over); i++) {
        attack(s, (attack_t)(i % NUM_ATTACKS));
        usleep(200); /* leaves the ranks some of the two cores */
    }
    return NULL;
}

static void siege_begin(siege_t *s)
{
    for (int i = 0; i < IDLE; i++)
        s->idle[i] = dial(&s->addr);
    pthread_create(&s->thread, NULL, besiege, s);
}

static void siege_end(siege_t *s)
{
    atomic_store(&s->over, 1);
    pthread_join(s->thread, NULL);
    for (int i = 0; i < IDLE; i++)
        rd_fd_close(s->idle[i]);
}

static int exchange(rd_boot_t *boot, int rank)
{
    int all[RANKS] = {0};
    all[rank] = rank + 1;
    if (rd_boot_allgather(boot, all, sizeof(all[0])) != RONDO_SUCCESS)
        return 1;
    for (int r = 0; r < RANKS; r++)
        if (all[r] != r + 1)
            return 1;
    return 0;
}

static int join(rd_boot_t **boot, const rondo_unique_id_t *id, int rank)
{
    static rd_stop_t stop;
    rd_env_t env;
    static rd_log_ctx_t ctx; /* outlives the bootstrap, as does `stop` */
    ctx = (rd_log_ctx_t){.rank = rank, .nranks = RANKS, .name = "test"};
    if (rd_env_read(&env) != RONDO_SUCCESS)
        return 1;
    if (rd_boot_create(boot, id, rank, RANKS, &env, &ctx, &stop) == RONDO_SUCCESS)
        return 0;
    printf("rank %d: %s\n", rank, rd_log_ctx_error(&ctx));
    return 1;
}

static int run_rank(const rondo_unique_id_t *id, int rank)
{
    static const int members[RANKS] = {0, 1, 2, 3, 4};
    rd_boot_t *boot, *second;
    rondo_unique_id_t derived;
    siege_t siege = {.over = 0};
    if (join(&boot, id, rank))
        return 1;
    siege.addr = boot->addrs[0];
    memcpy(siege.job, boot->id.creds.job, sizeof(siege.job));
    if (rank == RANKS - 1)
        siege_begin(&siege);
    int bad = exchange(boot, rank) || exchange(boot, rank);
    bad = bad || rd_boot_id_derive(boot, members, RANKS, 1, &derived) != RONDO_SUCCESS || join(&second, &derived, rank);
    if (!bad) {
        bad = exchange(second, rank) || exchange(boot, rank);
        rd_boot_farewell(second, RONDO_SUCCESS, -1);
        rd_boot_destroy(second);
    }
    if (rank == RANKS - 1)
        siege_end(&siege);
    rd_boot_farewell(boot, RONDO_SUCCESS, -1);
    rd_boot_destroy(boot);
    return bad;
}

int main(void)
{
    rondo_unique_id_t id;
    rd_id_t open;
    rd_env_t env;
    siege_t siege = {.over = 0};
    pid_t pids[RANKS];
    int status, bad = 0;
    alarm(60);
    gate_t gate = gate_make();
    for (int r = 0; r < RANKS; r++) {
        pids[r] = fork();
        if (pids[r] != 0)
            continue;
        alarm(40);
        id = gate_wait(&gate);
        usleep((useconds_t)r * 30000);
        exit(run_rank(&id, r));
    }
    if (rd_env_read(&env) != RONDO_SUCCESS || rd_boot_id_create(&id, &env) != RONDO_SUCCESS ||
        rd_id_unpack(&open, &id, NULL) != RONDO_SUCCESS)
        return 1;
    siege.addr = open.addr;
    memcpy(siege.job, open.creds.job, sizeof(siege.job));
    siege_begin(&siege);
    gate_open(&gate, &id, RANKS); /* the ranks come when the siege stands */
    for (int r = 0; r < RANKS; r++) {
        waitpid(pids[r], &status, 0);
        bad |= status != 0;
    }
    siege_end(&siege);
    printf("%d attacks\n", atomic_load(&siege.attacks));
    return bad;
}
