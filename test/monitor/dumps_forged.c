/* Dumps that are not what they should be: cut short, with any bytes changed, or in any order. Each reader says so, or
 * makes a record of what is there, which is then judged and written in every format; nothing of it may crash, hang, or
 * write without end. Seeds are printed.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/dumps.h"
#include "monitor/dump_fr.h"
#include "monitor/process.h"
#include "monitor/seat.h"
#include "util/check.h"
#include "util/harness.h"

#define TRIALS 4000
#define MOST (1 << 20)

static int taken; /* dumps that were not refused */

static void read_one(const unsigned char *bytes, size_t n)
{
    CHECK(dumps_read(bytes, n, &taken), "see test/fuzz/dumps.c");
}

static size_t spoil(unsigned char *bytes, size_t n, uint64_t *seed)
{
    int changes = 1 + (int)test_below(seed, 6);

    for (int i = 0; i < changes && n > 16; i++) {
        size_t at = test_below(seed, (unsigned)(n - 8)), from = test_below(seed, (unsigned)(n - 8));
        switch (test_below(seed, 5)) {
        case 0: /* a bit */
            bytes[at] ^= (unsigned char)(1u << test_below(seed, 8));
            break;
        case 1: /* a digit, which makes a number of JSON another one */
            bytes[at] = (unsigned char)("0123456789-e.\"[]{},:"[test_below(seed, 20)]);
            break;
        case 2: /* a piece of it somewhere else */
            memmove(bytes + at, bytes + from, 8);
            break;
        case 3: /* bytes that are lengths and opcodes of a pickle */
            bytes[at] = (unsigned char)("\x00\xff\x80(}]ue.hqrjXJKM\x8a\x86t"[test_below(seed, 20)]);
            break;
        default:
            if (test_below(seed, 20) == 0)
                n = at + 8;
        }
    }
    return n;
}

/* Returns the length of what `format` makes of the record of this process. */
static size_t make(unsigned char *to, const char *format)
{
    rd_view_t view = {0};
    rd_dump_t dump;
    rd_streams_t streams;
    static rd_out_t out;
    int fd = memfd_create("dump", MFD_CLOEXEC);

    CHECK(rd_view_add(&view, rd_record_fd()) && rd_view_look(&view, 0) && rd_view_look(&view, 0) &&
              rd_dump_read(&dump, &view, 0) && rd_streams_find(&streams, &dump),
          "no memory");
    rd_out_begin(&out, fd);
    if (strcmp(format, "json") == 0)
        rd_dump_json(&out, &dump, 0);
    else
        CHECK(rd_dump_fr(&out, &dump, &streams, 0), "no memory");
    CHECK(rd_out_end(&out) == 0, "cannot write");
    rd_streams_free(&streams, &dump);
    rd_dump_free(&dump);
    rd_view_free(&view);
    ssize_t n = pread(fd, to, MOST, 0);
    close(fd);
    return n > 0 ? (size_t)n : 0;
}

static void call(rd_seat_t *seat, rd_track_t track, const rd_monitor_call_t *what)
{
    rd_monitor_end(seat, track, rd_monitor_begin(seat, track, what), 0);
}

static void forge(const char *format, uint64_t first)
{
    static unsigned char good[MOST], bad[MOST];
    size_t n = make(good, format);

    taken = 0;
    read_one(good, n);
    CHECK(taken == 2, "%s: the good one is refused", format); /* one without its last newline is whole, too */
    for (size_t cut = 0; cut + 1 < n; cut += 1 + n / 300) {
        memcpy(bad, good, cut);
        read_one(bad, cut);
    }
    CHECK(taken == 2, "%s: one that was cut short is taken", format);
    for (uint64_t trial = 0; trial < TRIALS && !failures; trial++) {
        uint64_t seed = first + trial;
        memcpy(bad, good, n);
        read_one(bad, spoil(bad, n, &seed));
        if (failures)
            printf("%s, with the seed %llu\n", format, (unsigned long long)(first + trial));
    }
    printf("%s: %zu bytes, %d of %d dumps were taken\n", format, n, taken / 2, TRIALS);
    CHECK(taken > TRIALS / 20, "%s: nearly all are refused at once", format);
}

int main(void)
{
    rd_env_t env = {.monitor = 1, .monitor_events = 64};
    const rd_monitor_comm_args_t args = {
        .id = 5, .name = "forged", .rank = 1, .size = 2, .nodes = 1, .locals = 2, .device = -1};
    rd_seat_t seat;
    uint64_t first = getenv("RONDO_TEST_SEED") ? strtoull(getenv("RONDO_TEST_SEED"), NULL, 10) : 1;

    test_begin("monitor/dumps_forged", 120);
    setenv("RANK", "1", 1);
    setenv("WORLD_SIZE", "2", 1);
    printf("seeds from %llu\n", (unsigned long long)first);
    CHECK(rd_record_join(&env, NULL), "no record");
    rd_seat_init(&seat);
    rd_seat_take(&seat, &args);
    for (unsigned i = 0; i < 12; i++) {
        const rd_monitor_call_t reduce = {.count = i / 3, .bytes = i, .kind = (uint8_t)(i % 10), .type = 10};
        const rd_monitor_call_t send = rd_monitor_message(1, 100 + i, 0, 0, i),
                                receive = rd_monitor_message(0, 7, 0, 0, 0);
        for (int again = 0; again < 3; again++)
            call(&seat, RD_TRACK_COLLECTIVE, &reduce);
        call(&seat, RD_TRACK_SEND, &send);
        call(&seat, RD_TRACK_RECV, &receive);
    }
    if (!failures) {
        forge("json", first);
        forge("fr", first);
    }
    rd_seat_leave(&seat);
    rd_record_leave();
    printf("%d failures\n", failures);
    return failures != 0;
}
