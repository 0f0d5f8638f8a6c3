/* Who the ranks are: the host and the process of each.
 *
 * All are introduced to each other by their first exchange. What fails before that is to be said by name, too: whoever
 * connects to a neighbour says first who he is, as the table of the rendezvous does of those to which a rank connects;
 * and whoever blames another rank says before who that is, if he knows it. */
#include <string.h>

#include "boot/boot_int.h"

typedef struct __attribute__((packed)) name {
    int32_t rank;
    char whois[RD_WHOIS];
} name_t;

void rd_boot_say_name(rd_boot_t *b, rd_chan_t *chan, int rank)
{
    name_t name = {.rank = rank};

    if (rank < 0 || rank >= b->nranks || !b->whois[rank][0])
        return;
    memcpy(name.whois, b->whois[rank], RD_WHOIS);
    rd_chan_send(chan, RD_REC_NAME, &name, sizeof name);
}

/* What is known already stands. */
void rd_boot_heard_name(rd_boot_t *b, const unsigned char *data, size_t bytes)
{
    name_t name;

    if (bytes != sizeof name)
        return;
    memcpy(&name, data, bytes);
    name.whois[RD_WHOIS - 1] = 0;
    if (name.rank >= 0 && name.rank < b->nranks && !b->whois[name.rank][0])
        memcpy(b->whois[name.rank], name.whois, RD_WHOIS);
}

const char *rd_boot_whois(const rd_boot_t *b, int rank)
{
    return rank >= 0 && rank < b->nranks && b->whois[rank][0] ? b->whois[rank] : "its process is not known yet";
}
