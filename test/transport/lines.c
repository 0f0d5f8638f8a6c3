/* Messages by lines, of every length that lines may carry and at every alignment of the user's buffer: all bytes come,
 * none is written before or behind them, and a message of which a line is missing is not there yet. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/conns.h"
#include "transport/shm/ll.h"
#include "util/check.h"

#define GUARD 64
#define BYTE 0x5a

static rd_env_t env;
static rd_layout_t layout;
static rd_send_t from;
static rd_recv_t to;
static rd_counter_t credits[2];

static bool is_guard(const char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (at[i] != BYTE)
            return false;
    return true;
}

static void pass(size_t bytes, size_t shift)
{
    static char sent[RD_LL_MOST + GUARD], got[RD_LL_MOST + 3 * GUARD];
    char *at = got + GUARD + shift;
    uint64_t tag = rd_ll_tag(bytes + 1);
    uint32_t last = rd_ll_lines(bytes) - 1;

    for (size_t i = 0; i < bytes; i++)
        sent[shift + i] = (char)(i * 7 + bytes + 1);
    memset(got, BYTE, sizeof got);
    CHECK(rd_ll_may_send(&from, last + 1), "no space for %zu bytes", bytes);
    rd_ll_send(&from, sent + shift, bytes, tag);

    char *line = to.lines + ((to.ll_received + last) & to.lines_mask) * RD_LINE, whole[RD_LINE];
    memcpy(whole, line, RD_LINE);
    memset(line, 0, RD_LINE);
    CHECK(!rd_ll_peek(&to, at, bytes, tag), "%zu bytes have come without their last line", bytes);
    memcpy(line, whole, RD_LINE);
    CHECK(!rd_ll_peek(&to, at, bytes, rd_ll_tag(bytes + 2)), "%zu bytes, as a longer message", bytes);
    CHECK(rd_ll_peek(&to, at, bytes, tag), "%zu bytes have not come", bytes);
    rd_ll_consume(&to, bytes);
    CHECK(memcmp(at, sent + shift, bytes) == 0, "%zu bytes, %zu past a line, are others", bytes, shift);
    CHECK(is_guard(got, GUARD + shift) && is_guard(at + bytes, GUARD), "written around %zu bytes", bytes);
}

int main(void)
{
    char *inbox;

    if (rd_env_read(&env) != RONDO_SUCCESS)
        return 1;
    rd_layout_init(&layout, 2, 1, &env);
    inbox = aligned_alloc(4096, (layout.inbox_bytes + 4095) / 4096 * 4096);
    if (!inbox)
        return 1;
    memset(inbox, 0, layout.inbox_bytes);
    rd_send_lay(&from, &layout, inbox, credits, 1);
    rd_recv_lay(&to, &layout, inbox, credits, 0);
    for (size_t bytes = 1; bytes <= RD_LL_MOST && !failures; bytes++)
        for (size_t shift = 0; shift < 16; shift += bytes < 128 ? 1 : 5)
            pass(bytes, shift);
    free(inbox);
    printf("lines: %d failures\n", failures);
    return failures != 0;
}
