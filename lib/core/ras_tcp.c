/* See ras_tcp.h. */
#include "core/ras_tcp.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot/sock.h"
#include "core/ras_server.h"
#include "monitor/dump.h"
#include "monitor/held.h"
#include "monitor/nccl_ras.h"
#include "monitor/stacks.h"
#include "monitor/verdict.h"

#define CLIENT_MS 20000 /* for all of an answer */
#define MONITOR_MS 1000 /* from one look to the next */
#define NAMES_MS 1000   /* within which functions of stacks get names, or none */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rd_ras_server_t *servers[2]; /* for rondo-ras, and for NCCL's client */
static pid_t decided;               /* the process that has decided whether it listens */
static int users;                   /* its communicators */
static _Atomic int monitoring;      /* NCCL's clients that stay */

/* ---- answers ---- */

_Static_assert(RD_OUT_BYTES <= RD_WIRE_RECORD, "what is written at once is one record");

static bool put(void *wire, const void *bytes, size_t n)
{
    return rd_wire_send(wire, RD_WIRE_DATA, bytes, n);
}

/* Returns false if the client has gone. The text is sent as it is written: nothing of it is kept. */
static bool send_process(rd_wire_t *wire, const rd_dump_t *dump, int process)
{
    char name[64];
    rd_out_t out;

    snprintf(name, sizeof name, "rondo_dump_%d.json", dump->numbers[process]);
    if (!rd_wire_send(wire, RD_WIRE_FILE, name, strlen(name)))
        return false;
    rd_out_begin_sink(&out, put, wire);
    rd_dump_json(&out, dump, process);
    return rd_out_end(&out) == 0;
}

static bool send_all(rd_wire_t *wire, const rd_dump_t *dump)
{
    bool good = true;

    for (int i = 0; i < dump->view->nprocesses && good; i++)
        good = !rd_dump_has(dump, i) || send_process(wire, dump, i);
    return good && rd_wire_send(wire, RD_WIRE_END, NULL, 0);
}

/* Looks twice, as rondo-ras who does. Returns false if there is nothing, or the server is to end. */
static bool look(rd_ras_server_t *s, rd_view_t *view)
{
    return rd_held_view(view) && rd_view_look(view, 0) && view->nprocesses && rd_ras_server_pause(s, RD_VERDICT_MS) &&
           rd_held_again(view) && view->nprocesses && rd_view_look(view, 0);
}

static void answer(rd_ras_server_t *s, int fd)
{
    rd_wire_t wire;
    rd_view_t view = {0};
    rd_dump_t dump = {0};
    const char *why = rd_wire_serve(&wire, fd, rd_ras_server_secret(s), CLIENT_MS);
    rd_addr_t peer;
    char text[RD_ADDR_TEXT];

    if (why)
        rd_log(NULL, RD_LOG_INFO, "rondo-ras at %s is refused: %s",
               rd_addr_remote(fd, &peer) == 0 ? rd_addr_print(&peer, text) : "an unknown address", why);
    const bool seen = !why && look(s, &view);
    if (seen)
        rd_stacks_read(&view, NAMES_MS);
    if (seen && rd_dump_read(&dump, &view, view.processes[0].job))
        (void)send_all(&wire, &dump);
    if (dump.view)
        rd_dump_free(&dump);
    rd_view_free(&view);
    rd_wire_end(&wire);
}

/* As long as the client listens, and the server is there. */
static void monitor_nccl(rd_ras_server_t *s, rd_nccl_ras_t *client, rd_view_t *view)
{
    rd_nccl_ras_events_t events = {0};

    while (rd_held_view(view) && rd_view_look(view, 0) && rd_nccl_ras_tell(client, &events, view) &&
           rd_ras_server_pause(s, MONITOR_MS))
        continue;
    free(events.processes);
}

static void answer_nccl(rd_ras_server_t *s, int fd)
{
    rd_nccl_ras_t client;
    rd_view_t view = {0};

    const rd_nccl_ras_asked_t asked = rd_nccl_ras_asked(&client, fd);
    if (asked == RD_NCCL_RAS_MONITOR) { /* one place stays for those who ask and go */
        if (rd_nccl_ras_accept(&client, atomic_fetch_add(&monitoring, 1) < RD_RAS_CLIENTS - 1))
            monitor_nccl(s, &client, &view);
        atomic_fetch_sub(&monitoring, 1);
    }
    if (asked == RD_NCCL_RAS_STATUS) {
        int64_t began = rd_clock_ns();
        if (look(s, &view))
            rd_nccl_ras_answer(&client, &view, (double)(rd_clock_ns() - began) / 1e9);
    }
    rd_view_free(&view);
}

/* ---- beginning and end ---- */

static rd_ras_server_t *begin(rondo_comm_t comm)
{
    const char *why = "RONDO_RAS_KEY is not set, and nobody may ask without";
    rd_wire_secret_t secret = {{0}};
    rd_ras_server_t *s = NULL;

    if (comm->env.ras_key[0])
        why = rd_wire_secret(&secret, comm->env.ras_key);
    int listener = why ? -1 : rd_ras_listen(comm->env.ras_addr, false, &why);
    if (listener >= 0)
        s = rd_ras_server_start(listener, answer, &secret, &why);
    rd_wire_forget(&secret);
    if (!s)
        rd_log(&comm->ctx, RD_LOG_WARN, "RONDO_RAS_ADDR=%s: nobody can ask there: %s", comm->env.ras_addr, why);
    return s;
}

static rd_ras_server_t *begin_nccl(rondo_comm_t comm)
{
    const char *why;
    int listener = rd_ras_listen(comm->env.ras_nccl, true, &why);
    rd_ras_server_t *s = listener < 0 ? NULL : rd_ras_server_start(listener, answer_nccl, NULL, &why);

    if (!s)
        rd_log(&comm->ctx, RD_LOG_WARN, "RONDO_RAS_NCCL=%s (NCCL_RAS_ADDR): nobody can ask there: %s",
               comm->env.ras_nccl, why);
    return s;
}

static bool is_lowest(const struct rondo_comm *comm)
{
    const int *node_of = comm->node.node_of;

    for (int r = 0; r < comm->team.rank; r++)
        if (node_of[r] == node_of[comm->team.rank])
            return false;
    return true;
}

void rd_ras_tcp_join(rondo_comm_t comm)
{
    if (comm->internal || (!comm->env.ras_addr[0] && !comm->env.ras_nccl[0]) || !comm->seat.record)
        return;
    pthread_mutex_lock(&lock);
    if (decided != getpid()) { /* a forked child has no such thread */
        decided = getpid();
        users = 0;
        bool here = is_lowest(comm);
        servers[0] = here && comm->env.ras_addr[0] ? begin(comm) : NULL;
        servers[1] = here && comm->env.ras_nccl[0] ? begin_nccl(comm) : NULL;
    }
    users++;
    comm->ras_tcp = true;
    pthread_mutex_unlock(&lock);
}

void rd_ras_tcp_forget(void)
{
    pthread_mutex_init(&lock, NULL);
    for (int i = 0; i < 2; i++) {
        if (servers[i])
            rd_ras_server_forget(servers[i]);
        servers[i] = NULL;
    }
    users = 0;
    decided = 0;
    atomic_store(&monitoring, 0);
}

void rd_ras_tcp_leave(rondo_comm_t comm)
{
    if (!comm->ras_tcp)
        return;
    comm->ras_tcp = false;
    pthread_mutex_lock(&lock);
    if (--users == 0) { /* with the lock: who listens next finds the port free */
        for (int i = 0; i < 2; i++) {
            rd_ras_server_t *server = servers[i];
            servers[i] = NULL; /* a fork in this moment finds none in its child */
            if (server)
                rd_ras_server_end(server);
        }
        decided = 0;
    }
    pthread_mutex_unlock(&lock);
}
