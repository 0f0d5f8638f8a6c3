/* Verdicts on ranks and links that move, but slowly, from what ranks waited for them in the last periods. */
#include <stdio.h>

#include "monitor/judged.h"
#include "util/harness.h"

/* ---- slow, or working inside ---- */

/* In each of the last ten short periods it waited so many ms of each second, in so many calls, for `peer`. */
static void waited(int rank, uint64_t ms, uint64_t times, int peer)
{
    for (uint64_t ago = 0; ago < RD_PERIODS_SHORT; ago++) {
        uint64_t number = (NOW_MS >> RD_PERIOD_SHORT_SHIFT) - ago;
        rd_monitor_period_t *p = &boards[rank]->shorts[number % RD_PERIODS_SHORT];
        p->number = number + 1;
        p->waited = ms << 32 | times;
        p->calls = 1000 - 10 * ago;
        p->peer = peer < 0 ? 0 : ms << 32 | (uint64_t)(peer + 1);
    }
}

static void slow_or_works(void)
{
    begin(3);
    for (int r = 0; r < 3; r++) {
        calls(r, 1010, 1010);
        waited(r, r == 1 ? 0 : 900, r == 1 ? 0 : 10, r == 1 ? -1 : 1);
    }
    look_twice();
    EXPECT(RD_VERDICT_SLOW, 1, "rank 1 (host:1001) is slow: it came late to ");
    calls(1, 1010, 1009); /* at both looks: what it does then is its part of the call, which others wait for */
    look_twice();
    EXPECT(RD_VERDICT_NONE, -1, "");
    calls(1, 1010, 1010);
    judge(); /* it was inside at the look before */
    EXPECT(RD_VERDICT_SLOW, 1, "is slow");
    waited(1, 500, 5, -1); /* it has more to do than the others, but not much */
    look_twice();
    EXPECT(RD_VERDICT_NONE, -1, "");
    waited(1, 0, 0, -1);
    boards[1]->shorts[5].calls += UINT64_C(9000) << 32; /* ms that it waited in messages: so it is not its own fault */
    look_twice();
    EXPECT(RD_VERDICT_NONE, -1, "");
    waited(1, 0, 0, -1);
    waited(0, 900, 10, 2);
    waited(2, 900, 10, 0); /* those two wait for each other */
    look_twice();
    EXPECT(RD_VERDICT_NONE, -1, "");
    end();
}

/* ---- a link ---- */

static void paces(int rank, int place, int peer, int class, uint64_t count)
{
    rd_monitor_link_t *link = &boards[rank]->links[place];
    const int shift = class % 8 * 8;

    link->peer = (uint64_t)peer + 1;
    link->period = UINT64_C(9) << 32 | NOW_MS >> RD_PERIOD_SHORT_SHIFT;
    link->paces[class / 8] = (link->paces[class / 8] & ~(UINT64_C(255) << shift)) | count << shift;
}

/* Twenty messages of this class of pace have come from `peer`. */
static void pace(int rank, int place, int peer, int class)
{
    boards[rank]->links[place].paces[class / 8] = 0;
    paces(rank, place, peer, class, 20);
}

static void begin_waiting(void)
{
    begin(4);
    for (int r = 0; r < 4; r++) {
        calls(r, 1010, 1009);
        waited(r, 800, 10, -1);
    }
}

/* Ranks that lack a core have few quick paces on every link: one without, of twenty, is nothing; of 150 it is. */
static void links_by_chance(void)
{
    begin_waiting();
    for (int r = 0; r < 4; r++)
        for (int k = 1; k < 4; k++) {
            const bool it = r == 2 && (r + k) % 4 == 3;
            paces(r, k, (r + k) % 4, 3, it ? 20 : 50);
            paces(r, k, (r + k) % 4, 8, it ? 0 : 8);
        }
    look_twice();
    EXPECT(RD_VERDICT_NONE, -1, "");
    paces(2, 1, 3, 3, 150);
    look_twice();
    EXPECT(RD_VERDICT_SLOW, -1, "the link from rank 3 (host:1003) to rank 2 (host:1002) is slow");
    paces(2, 1, 3, 8, 4); /* less than a tenth, and yet too many for a link that cannot do that */
    look_twice();
    EXPECT(RD_VERDICT_NONE, -1, "");
    end();
}

/* Whatever comes to a rank is slow: that is no link. */
static void receiver(void)
{
    begin_waiting();
    for (int r = 0; r < 4; r++)
        for (int k = 1; k < 4; k++)
            pace(r, k, (r + k) % 4, r == 2 ? 3 : 10);
    look_twice();
    EXPECT(RD_VERDICT_NONE, -1, "");
    end();
}

/* No rank is named by number: neither end is slow. */
static void links(void)
{
    begin_waiting();
    for (int r = 0; r < 4; r++) {
        for (int k = 1; k < 4; k++)
            pace(r, k, (r + k) % 4, r == 2 && (r + k) % 4 == 3 ? 3 : 10);
    }
    look_twice();
    EXPECT(RD_VERDICT_SLOW, -1, "the link from rank 3 (host:1003) to rank 2 (host:1002) is slow");
    waited(3, 100, 10, -1); /* the sender has something else to do */
    look_twice();
    EXPECT(RD_VERDICT_NONE, -1, "");
    waited(3, 800, 10, -1);
    pace(1, 2, 3, 3); /* what it sends to another one is slow, too */
    boards[1]->links[2].paces[1] = 0;
    look_twice();
    EXPECT(RD_VERDICT_NONE, -1, "");
    pace(1, 2, 3, 10);
    boards[1]->links[2].paces[0] = 0;
    pace(2, 1, 3, 9); /* half as fast as the others */
    boards[2]->links[1].paces[0] = 0;
    look_twice();
    EXPECT(RD_VERDICT_NONE, -1, "");
    end();
}

int main(void)
{
    test_begin("monitor/judged_slow", 60);
    slow_or_works();
    links();
    links_by_chance();
    receiver();
    printf("%d failures\n", failures);
    return failures != 0;
}
