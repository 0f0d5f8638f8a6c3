/* Records that are not what they should be: cut short, of other lengths and versions, with any bytes changed. A reader
 * says so, or reads what is there; it never reads beyond the record, nor prints what a terminal would obey. Seeds are
 * printed; the record lies before a page that may not be touched.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "monitor/process.h"
#include "monitor/read.h"
#include "monitor/seat.h"
#include "util/check.h"
#include "util/harness.h"

#define TRIALS 20000

static char *room; /* ends at the forbidden page */
static size_t bytes;

static void read_all(const char *at, size_t length)
{
    rd_reader_t r;
    rd_monitor_comm_t comm;
    rd_monitor_event_t e;

    if (rd_reader_memory(&r, at, length))
        return;
    for (const char *c = r.head.program; *c; c++)
        CHECK(*c >= ' ' && *c < 0x7f, "an unprintable character");
    for (int i = 0; i < rd_reader_comms(&r) && i < 300; i++)
        if (rd_reader_comm(&r, i, &comm)) {
            CHECK(comm.size > 0 && comm.rank >= 0 && comm.rank < comm.size && strlen(comm.name) < RD_MONITOR_NAME,
                  "a communicator that makes no sense");
            for (int t = 0; t < RD_TRACKS; t++)
                (void)rd_reader_last(&r, &comm, (rd_track_t)t, &e);
        }
    uint64_t next = rd_reader_events(&r);
    for (uint64_t i = 0; i < 100; i++) {
        (void)rd_reader_event(&r, i, &e);
        (void)rd_reader_event(&r, next - i, &e);
    }
}

/* Changes some words, above all of the head. */
static void spoil(uint64_t *seed)
{
    static const uint64_t values[] = {0, 1, UINT64_MAX, INT64_MAX, UINT64_MAX - 63, 1u << 31, 64, 4096};
    int changes = 1 + (int)test_below(seed, 4);

    for (int i = 0; i < changes; i++) {
        size_t limit = test_below(seed, 3) ? sizeof(rd_monitor_head_t) : bytes;
        size_t at = test_below(seed, (unsigned)(limit - 8));
        uint64_t value = test_below(seed, 2) ? values[test_below(seed, 8)] : test_random(seed);
        size_t width = (size_t)1 << test_below(seed, 4);
        memcpy(room + at, &value, width);
    }
    if (test_below(seed, 4))
        *(uint64_t *)(void *)room = RD_MONITOR_MAGIC; /* else most would be refused at once */
}

/* One word of the head, and the record is refused. */
static void refused(const void *own)
{
    rd_monitor_head_t *head = (void *)room;
    rd_reader_t r;

    head->magic ^= 1;
    CHECK(rd_reader_memory(&r, room, bytes), "another magic is taken");
    memcpy(room, own, bytes);
    head->version++;
    CHECK(rd_reader_memory(&r, room, bytes), "another version is taken");
    memcpy(room, own, bytes);
    head->bytes += 64;
    CHECK(rd_reader_memory(&r, room, bytes), "one that is longer than what there is is taken");
    memcpy(room, own, bytes);
}

/* What is in it is cut, or left out. */
static void cut(const void *own)
{
    rd_monitor_head_t *head = (void *)room;
    rd_monitor_comm_t *c = (void *)(room + head->comms_at), comm;
    rd_reader_t r;

    memset(head->host, 'x', sizeof head->host);
    CHECK(!rd_reader_memory(&r, room, bytes) && strlen(r.head.host) < RD_MONITOR_NAME, "a name has no end");
    CHECK(rd_reader_comm(&r, 0, &comm), "the communicator is not read");
    c->rank = c->size;
    CHECK(!rd_reader_comm(&r, 0, &comm), "a rank beyond its communicator is taken");
    c->rank = -1;
    CHECK(!rd_reader_comm(&r, 0, &comm), "a rank before its communicator is taken");
    memcpy(room, own, bytes);
}

int main(void)
{
    rd_env_t env = {.monitor = 1, .monitor_events = 64};
    rd_reader_t own;
    rd_seat_t seat;
    const rd_monitor_comm_args_t args = {
        .id = 5, .name = "forged", .rank = 1, .size = 4, .nodes = 1, .locals = 4, .device = -1};

    CHECK(rd_record_join(&env, NULL) && !rd_reader_open(&own, rd_record_fd()), "no record");
    if (failures)
        return 1;
    rd_seat_init(&seat);
    rd_seat_take(&seat, &args);
    for (uint64_t i = 0; i < 100; i++) {
        const rd_monitor_call_t call = {.count = i};
        rd_monitor_end(&seat, RD_TRACK_COLLECTIVE, rd_monitor_begin(&seat, RD_TRACK_COLLECTIVE, &call), 0);
    }
    bytes = own.bytes;
    size_t page = 4096, mapped = (bytes + page - 1) / page * page;
    char *at = mmap(NULL, mapped + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || mprotect(at + mapped, page, PROT_NONE) != 0)
        return 77;
    room = at + mapped - bytes;
    memcpy(room, own.base, bytes);
    rd_reader_t r;
    CHECK(!rd_reader_memory(&r, room, bytes), "the good one is refused");
    refused(own.base);
    cut(own.base);
    for (size_t length = 0; length < bytes; length += 64) { /* cut short: it ends at the page as well */
        memmove(at + mapped - length, own.base, length);
        CHECK(rd_reader_memory(&r, at + mapped - length, length), "%zu bytes of it were taken", length);
    }
    uint64_t first = getenv("RONDO_TEST_SEED") ? strtoull(getenv("RONDO_TEST_SEED"), NULL, 10) : 1;
    printf("seeds from %llu\n", (unsigned long long)first);
    for (uint64_t trial = 0; trial < TRIALS && !failures; trial++) {
        uint64_t seed = first + trial;
        memcpy(room, own.base, bytes);
        spoil(&seed);
        read_all(room, bytes);
        if (failures)
            printf("with the seed %llu\n", (unsigned long long)(first + trial));
    }
    rd_seat_leave(&seat);
    rd_reader_close(&own);
    rd_record_leave();
    printf("%d failures\n", failures);
    return failures != 0;
}
