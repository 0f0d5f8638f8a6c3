/* rondo-info doctor --network: one pair of nodes, by a communicator of its own, so that what a pair suffers from does
 * not touch the others. Messages go as they would in a job, by the transport between nodes. Short ones come first: a
 * network whose devices disagree on the longest packet lets those through and swallows the long ones. It runs in a
 * process of its own (doctor_pair_process.c), which is told how far it has come. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "doctor_nodes.h"

#define WAIT_MS 5000  /* for one message */
#define PAIR_MS 20000 /* for all of them: a pair that is slower than that has been seen to be slow */
#define SHORT 8       /* bytes */
#define ROUND_TRIPS 100
#define WARM 10
#define LONG ((size_t)4 << 20)
#define BURST_NS 40000000 /* what a burst should take */
#define MOST_IN_BURST 32
#define BURSTS 3 /* the best one counts: something else may run on the host */

typedef struct pair {
    rondo_comm_t comm;
    int side;
    char *bytes;
    int64_t until_ms;
    void (*tell)(const pair_result_t *so_far);
} pair_t;

static rondo_result_t pass(const pair_t *p, int from, void *data, size_t bytes)
{
    if (rd_clock_ms() > p->until_ms)
        return RONDO_ERR_TIMEOUT;
    return p->side == from ? rondo_send(data, bytes, RONDO_UINT8, 1 - p->side, p->comm, NULL)
                           : rondo_recv(data, bytes, RONDO_UINT8, 1 - p->side, p->comm, NULL);
}

static rondo_result_t round_trip(const pair_t *p, void *data, size_t bytes)
{
    rondo_result_t result = pass(p, 0, data, bytes);

    return result == RONDO_SUCCESS ? pass(p, 1, data, bytes) : result;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static rondo_result_t short_messages(const pair_t *p, double *us)
{
    double times[ROUND_TRIPS];

    for (int i = -WARM; i < ROUND_TRIPS; i++) {
        int64_t began = rd_clock_ns();
        rondo_result_t result = round_trip(p, p->bytes, SHORT);
        if (result != RONDO_SUCCESS)
            return result;
        if (i >= 0)
            times[i] = (double)(rd_clock_ns() - began) / 2e3;
    }
    qsort(times, ROUND_TRIPS, sizeof *times, ascending);
    *us = times[ROUND_TRIPS / 2];
    return RONDO_SUCCESS;
}

/* The sender has its time from the receiver's answer. */
static rondo_result_t burst(const pair_t *p, int from, int count, double *gbps)
{
    int64_t began = rd_clock_ns();
    char answer[SHORT] = {0};
    rondo_result_t result = RONDO_SUCCESS;

    for (int i = 0; i < count && result == RONDO_SUCCESS; i++)
        result = pass(p, from, p->bytes, LONG);
    if (result == RONDO_SUCCESS)
        result = pass(p, 1 - from, answer, sizeof answer);
    double rate = (double)count * (double)LONG / (double)(rd_clock_ns() - began);
    if (result == RONDO_SUCCESS && p->side == from && rate > *gbps)
        *gbps = rate;
    return result;
}

/* A first long message shows how many make a burst of some length; side 0 decides. */
static rondo_result_t long_messages(const pair_t *p, double *gbps)
{
    rondo_result_t result = round_trip(p, p->bytes, LONG);
    int64_t began = rd_clock_ns(), count;

    if (result == RONDO_SUCCESS)
        result = round_trip(p, p->bytes, LONG);
    count = BURST_NS / ((rd_clock_ns() - began) / 2 + 1) + 1;
    count = count < MOST_IN_BURST ? count : MOST_IN_BURST;
    if (result == RONDO_SUCCESS)
        result = pass(p, 0, &count, sizeof count);
    if (result == RONDO_SUCCESS && (count < 1 || count > MOST_IN_BURST))
        return RONDO_ERR_INTERNAL;
    for (int from = 0; from < 2; from++)
        for (int i = 0; i < BURSTS && result == RONDO_SUCCESS; i++)
            result = burst(p, from, (int)count, gbps);
    return result;
}

static void measure(pair_t *p, pair_result_t *out)
{
    nodes_segments_t before, after;
    const bool counted = doctor_segments("/proc/net/snmp", &before);
    rondo_result_t result = short_messages(p, &out->us);

    if (result == RONDO_SUCCESS) {
        out->stage = WAY_NO_LARGE;
        p->tell(out);
        result = long_messages(p, &out->gbps);
    }
    if (counted && doctor_segments("/proc/net/snmp", &after))
        out->resent = doctor_resent(&before, &after);
    if (result == RONDO_SUCCESS)
        out->stage = WAY_DONE;
    else if (result != RONDO_ERR_TIMEOUT)
        snprintf(out->text, sizeof out->text, "%.*s", WAY_TEXT - 1,
                 *rondo_last_error(p->comm) ? rondo_last_error(p->comm) : rondo_result_string(result));
}

void doctor_pair_try(const rondo_unique_id_t *id, int side, pair_result_t *out,
                     void (*tell)(const pair_result_t *so_far))
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    pair_t p = {.side = side, .bytes = calloc(1, LONG), .tell = tell};

    memset(out, 0, sizeof *out);
    out->stage = WAY_NO_START;
    config.device = RONDO_DEVICE_HOST;
    config.timeout_ms = config.first_timeout_ms = WAIT_MS;
    config.stall_ms = 0;
    if (!p.bytes) {
        snprintf(out->text, sizeof out->text, "no memory");
        return; /* the other side's creation ends at its limit */
    }
    if (rondo_comm_create(&p.comm, 2, id, side, &config) != RONDO_SUCCESS) {
        snprintf(out->text, sizeof out->text, "%.*s", WAY_TEXT - 1, rondo_last_error(NULL));
        free(p.bytes);
        return;
    }
    p.until_ms = rd_clock_ms() + PAIR_MS;
    out->stage = WAY_NO_SMALL;
    tell(out);
    measure(&p, out);
    if (out->stage == WAY_DONE)
        rondo_comm_destroy(p.comm);
    else
        rondo_comm_abort(p.comm);
    free(p.bytes);
}

/* All but the last player sit on a circle: in each round those meet whose numbers add up to the round's, and whoever
 * would meet itself meets the last one, which is nobody if they are odd. */
int doctor_rounds(int n)
{
    return n < 2 ? 0 : n % 2 ? n : n - 1;
}

int doctor_opponent(int n, int round, int self)
{
    int circle = doctor_rounds(n), other;

    if (self == circle) { /* the last one of an even number */
        for (other = 0; 2 * other % circle != round % circle; other++)
            continue;
        return other;
    }
    other = ((round - self) % circle + circle) % circle;
    if (other == self)
        return n % 2 ? -1 : n - 1;
    return other;
}
