/* The conversation: see nccl_ras.h. */
#include "monitor/nccl_ras.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/wait.h"

/* ---- bytes ---- */

static bool wait_for(const rd_nccl_ras_t *c, short events)
{
    struct pollfd p = {.fd = c->fd, .events = events};
    int n = 0;

    for (int64_t left = 1; left > 0;) {
        left = c->until_ms - rd_clock_ms();
        n = left > 0 ? poll(&p, 1, (int)left) : 0;
        if (n >= 0 || errno != EINTR)
            break;
    }
    return n == 1;
}

static bool put(void *arg, const void *bytes, size_t n)
{
    const rd_nccl_ras_t *c = arg;

    for (const char *at = bytes; n > 0;) {
        ssize_t sent = send(c->fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            at += sent;
            n -= (size_t)sent;
        } else if ((errno != EAGAIN && errno != EINTR) || !wait_for(c, POLLOUT)) {
            return false;
        }
    }
    return true;
}

static bool say(rd_nccl_ras_t *c, const char *line)
{
    return put(c, line, strlen(line));
}

/* Takes the next line out of what has come. Returns false if it is not whole yet. */
static bool take_line(rd_nccl_ras_t *c, char line[RD_NCCL_RAS_LINE])
{
    const char *end = memchr(c->bytes, '\n', (size_t)c->have);
    int n = end ? (int)(end - c->bytes) : 0, text = n;

    if (!end)
        return false;
    while (text > 0 && c->bytes[text - 1] == '\r') /* of telnet */
        text--;
    memcpy(line, c->bytes, (size_t)text);
    line[text] = 0;
    c->have -= n + 1;
    memmove(c->bytes, end + 1, (size_t)c->have);
    return true;
}

/* Returns false if there is none: the client has gone, has had its time, or has sent what is none. */
static bool next_line(rd_nccl_ras_t *c, char line[RD_NCCL_RAS_LINE])
{
    while (!take_line(c, line)) {
        if (c->have == RD_NCCL_RAS_LINE) {
            (void)say(c, "ERROR: a line has 255 bytes at most\n");
            return false;
        }
        ssize_t got = recv(c->fd, c->bytes + c->have, (size_t)(RD_NCCL_RAS_LINE - c->have), MSG_DONTWAIT);
        if (got > 0)
            c->have += (int)got;
        else if (got == 0 || (errno != EAGAIN && errno != EINTR) || !wait_for(c, POLLIN))
            return false;
    }
    return true;
}

/* ---- commands ---- */

/* Returns what follows a command's words, or NULL if it is another one. */
static const char *after(const char *line, const char *words)
{
    size_t n = strlen(words);

    return strncasecmp(line, words, n) == 0 ? line + n : NULL;
}

/* Nobody is waited for here, so the limit that the client sets is met in any case. */
static const char *timeout(const char *text)
{
    char *end;
    long seconds = strtol(text, &end, 10);

    return *text && !*end && seconds >= 0 && seconds <= INT_MAX ? "OK\n" : "ERROR: TIMEOUT needs a number of seconds\n";
}

static const char *format(rd_nccl_ras_t *c, const char *text)
{
    if (strcasecmp(text, "text") != 0 && strcasecmp(text, "json") != 0)
        return "ERROR: there are the formats text and json\n";
    c->json = strcasecmp(text, "json") == 0;
    return "OK\n";
}

static const char *reply_to(rd_nccl_ras_t *c, const char *line)
{
    const char *rest;

    if (after(line, "client protocol "))
        return "SERVER PROTOCOL 2\n"; /* of NCCL 2.24 to 2.32; a client of another one says so, and goes on */
    if ((rest = after(line, "timeout ")))
        return timeout(rest);
    if ((rest = after(line, "set format ")))
        return format(c, rest);
    return "ERROR: there is no such command; there are STATUS, VERBOSE STATUS, MONITOR, SET FORMAT and TIMEOUT\n";
}

/* Reads the groups of events that MONITOR names, as bits; 0: one of them is none. */
static int groups_of(const char *text)
{
    static const struct {
        const char *name;
        int groups;
    } known[] = {{"lifecycle", RD_NCCL_RAS_LIFECYCLE},
                 {"trace", RD_NCCL_RAS_TRACE},
                 {"all", RD_NCCL_RAS_LIFECYCLE | RD_NCCL_RAS_TRACE}};
    int groups = 0;

    for (text += strspn(text, " "); *text;) {
        const size_t n = strcspn(text, ",");
        int found = 0;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            if (strlen(known[i].name) == n && strncasecmp(text, known[i].name, n) == 0)
                found = known[i].groups;
        if (!found)
            return 0;
        groups |= found;
        text += n + (text[n] == ',');
    }
    return groups ? groups : RD_NCCL_RAS_LIFECYCLE;
}

static bool is_monitor(const char *line)
{
    const char *rest = after(line, "monitor");

    return rest && (!*rest || *rest == ' ');
}

/* Returns whether the line is MONITOR, of groups that there are. */
static bool monitors(rd_nccl_ras_t *c, const char *line)
{
    if (!is_monitor(line))
        return false;
    c->groups = groups_of(line + strlen("monitor"));
    if (c->groups)
        return true;
    (void)say(
        c, "ERROR: there are the groups lifecycle, trace and all\n"); /* one that has gone is found when it is read */
    return false;
}

bool rd_nccl_ras_accept(rd_nccl_ras_t *c, bool room)
{
    return say(c, room ? "OK\n" : "ERROR: no more clients may monitor: one place is left for those who ask\n") && room;
}

rd_nccl_ras_asked_t rd_nccl_ras_asked(rd_nccl_ras_t *c, int fd)
{
    char line[RD_NCCL_RAS_LINE];

    memset(c, 0, sizeof *c);
    c->fd = fd;
    c->until_ms = rd_clock_ms() + RD_NCCL_RAS_ASK_MS;
    while (c->lines++ < RD_NCCL_RAS_LINES && next_line(c, line)) {
        c->verbose = strcasecmp(line, "verbose status") == 0;
        if (c->verbose || strcasecmp(line, "status") == 0)
            return RD_NCCL_RAS_STATUS;
        if (monitors(c, line))
            return RD_NCCL_RAS_MONITOR;
        if (!is_monitor(line) && !say(c, reply_to(c, line)))
            return RD_NCCL_RAS_NOTHING;
    }
    return RD_NCCL_RAS_NOTHING;
}

/* Further commands are read, and nothing comes of them. */
static bool listens(const rd_nccl_ras_t *c)
{
    char bytes[RD_NCCL_RAS_LINE];
    ssize_t n;

    while ((n = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        continue;
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

bool rd_nccl_ras_tell(rd_nccl_ras_t *c, rd_nccl_ras_events_t *events, const rd_view_t *view)
{
    rd_out_t out;

    c->until_ms = rd_clock_ms() + RD_NCCL_RAS_ANSWER_MS;
    events->groups = c->groups;
    events->json = c->json;
    rd_out_begin_sink(&out, put, c);
    rd_nccl_ras_events(events, &out, view);
    return rd_out_end(&out) == 0 && listens(c);
}

void rd_nccl_ras_answer(rd_nccl_ras_t *c, const rd_view_t *view, double seconds)
{
    rd_out_t out;

    c->until_ms = rd_clock_ms() + RD_NCCL_RAS_ANSWER_MS;
    rd_out_begin_sink(&out, put, c);
    if (c->json)
        rd_nccl_ras_json(&out, view, seconds);
    else
        rd_nccl_ras_text(&out, view, c->verbose, seconds);
    if (rd_out_end(&out) != 0)
        return;
    /* What the client still says is read, as a close before would cut off what it has not taken. */
    (void)shutdown(c->fd, SHUT_WR);
    while (wait_for(c, POLLIN) && recv(c->fd, c->bytes, sizeof c->bytes, MSG_DONTWAIT) > 0)
        continue;
}
