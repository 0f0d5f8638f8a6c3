/* A connection whose messages all begin in slots: their numbers are those of lines that nobody writes. After 2^32 of
 * them what lies in the ring, a line of long ago or none at all, is not taken for the next line. And each message in a
 * slot has the signature of its own call, however far its sender is ahead. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/announce.h"
#include "transport/conns.h"
#include "util/check.h"

#define BEFORE 100000 /* numbers, before the lines' numbers repeat */
#define BYTES 5000

static rd_env_t env;
static rd_layout_t layout;
static rd_send_t from;
static rd_recv_t to;
static char *inbox;
static rd_counter_t credits[2];

static void begin(void)
{
    memset(inbox, 0, layout.inbox_bytes);
    memset(credits, 0, sizeof credits);
    memset(&from, 0, sizeof from);
    memset(&to, 0, sizeof to);
    rd_send_lay(&from, &layout, inbox, credits, 1);
    rd_recv_lay(&to, &layout, inbox, credits, 0);
}

static void skip_numbers(uint64_t n)
{
    from.ll_sent += n;
    from.ll_credit += n;
    to.ll_received += n;
    to.ll_returned += n;
    credits[1].value += n;
}

/* One message by a slot. Returns true if it was found, and nothing was before it came. */
static bool pass_slot(void)
{
    uint64_t sent = 0;

    if (rd_announce_slot_take(&to, 0, &sent) || !rd_announce_in_slot(&from, BYTES))
        return false;
    if (rd_slot_publish(&from, 0, BYTES, 0) != RONDO_SUCCESS)
        return false;
    if (!rd_announce_slot_take(&to, 0, &sent) || sent != BYTES)
        return false;
    return rd_slot_return(&to, BYTES) == RONDO_SUCCESS;
}

static bool pass_line(void)
{
    uint64_t sent = 0, tag = rd_ll_tag(sizeof sent + 1);

    if (!rd_ll_may_send(&from, 1))
        return false;
    rd_ll_send(&from, (const char *)&sent, sizeof sent, tag);
    if (!rd_announce_line_next(&to, 0, &sent) || sent != sizeof sent)
        return false;
    rd_ll_consume(&to, sizeof sent);
    return true;
}

/* `lines` messages by lines, then as many by slots as it takes. */
static void repeat(const char *what, uint32_t lines)
{
    check_now = what;
    begin();
    for (uint32_t i = 0; i < lines; i++)
        CHECK(pass_line());
    skip_numbers((UINT64_C(1) << 32) - BEFORE);
    for (uint64_t i = 0, most = BEFORE + 2 * (uint64_t)(to.lines_mask + 1); i < most && !failures; i++)
        CHECK(pass_slot(), "message %llu", (unsigned long long)to.ll_received);
    CHECK(pass_line());
}

static uint64_t sign_of(uint64_t message)
{
    return (message + 1) << 32;
}

/* The sender uses each slot as soon as it is given back, and the receiver has read the count before that. */
static void pass_signed(const char *what, uint64_t slots)
{
    check_now = what;
    begin();
    for (uint64_t i = 0; i < slots; i++)
        CHECK(rd_slot_publish(&from, sign_of(i), BYTES, 0) == RONDO_SUCCESS);
    CHECK(!rd_slot_may_send(&from, BYTES));
    for (uint64_t i = 0; i < 5 * slots; i++) {
        CHECK(!rd_slot_arrived(&to, sign_of(i + 1)), "message %llu", (unsigned long long)i);
        CHECK(rd_slot_arrived(&to, sign_of(i)), "message %llu", (unsigned long long)i);
        CHECK(rd_slot_return(&to, BYTES) == RONDO_SUCCESS && rd_slot_may_send(&from, BYTES));
        CHECK(rd_slot_publish(&from, sign_of(i + slots), BYTES, 0) == RONDO_SUCCESS);
    }
}

static bool lay_out(int slots)
{
    free(inbox);
    env.slots = slots;
    rd_layout_init(&layout, 2, 1, &env);
    inbox = aligned_alloc(4096, (layout.inbox_bytes + 4095) / 4096 * 4096);
    return inbox && (slots == 0 || layout.slots == (uint32_t)slots);
}

int main(void)
{
    if (rd_env_read(&env) != RONDO_SUCCESS || !lay_out(0))
        return 1;
    repeat("no line was ever written", 0);
    repeat("some lines were written", layout.lines / 2);
    repeat("all lines were written", layout.lines);
    CHECK(lay_out(1));
    pass_signed("one slot", 1);
    CHECK(lay_out(8));
    pass_signed("signatures beside the count", 8);
    CHECK(lay_out(64));
    pass_signed("signatures behind the lines", 64);
    free(inbox);
    printf("announce: %d failures\n", failures);
    return failures != 0;
}
