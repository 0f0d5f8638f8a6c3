/* Keys to memory that peers fetch from: memory that is known is mapped once, however often it is used, and other memory
 * in its place anew; what nobody uses is kept within bounds, and not at all where nobody knows what it is. A peer's are
 * known again by their bytes. UCX is played. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/check.h"
#include "util/played_get.h"
#include "ucx/ucx_gdr.h"

#define MANY 100
#define EACH 2 /* what a key is to UCX: mapped memory, and what is packed of it */

static char memory[MANY];
static rd_ucx_net_t net;
static rd_ucx_gdr_t gdr;

static rd_ucx_rkey_t *own(size_t bytes, uint64_t number)
{
    const rd_net_memory_t whole = {memory, bytes, number};
    return rd_ucx_rkey_own(&net, &whole, 0);
}

static void check_known(void)
{
    rd_ucx_rkey_t *one = own(64, 1), *again = own(64, 1), *other = own(64, 2), *shorter = own(63, 1);
    CHECK(one != NULL && one == again && one->users == 2);
    CHECK(other != one && shorter != one && shorter != other && played_get_left() == 3 * EACH);
    rd_ucx_rkey_release(&net, &one);
    rd_ucx_rkey_release(&net, &again);
    rd_ucx_rkey_release(&net, &other);
    rd_ucx_rkey_release(&net, &shorter);
    CHECK(one == NULL && played_get_left() == 3 * EACH);
    one = own(64, 1);
    CHECK(one->users == 1 && played_get_left() == 3 * EACH);
    rd_ucx_rkey_release(&net, &one);
}

static void check_unknown(void)
{
    int before = played_get_left();
    rd_ucx_rkey_t *one = own(32, 0), *again = own(32, 0);
    CHECK(one == again && played_get_left() == before + EACH);
    rd_ucx_rkey_release(&net, &one);
    CHECK(played_get_left() == before + EACH);
    rd_ucx_rkey_release(&net, &again);
    CHECK(played_get_left() == before);
}

/* None goes that is used. */
static void check_bounds(void)
{
    rd_ucx_rkey_t *used[MANY], *key = NULL;
    for (uint64_t i = 0; i < MANY; i++) {
        key = own(16, 1000 + i);
        rd_ucx_rkey_release(&net, &key);
    }
    CHECK(played_get_left() < MANY * EACH / 2);
    for (uint64_t i = 0; i < MANY; i++) {
        used[i] = own(16, 2000 + i);
    }
    for (uint64_t i = 0; i < MANY; i++) {
        CHECK(used[i]->whole.number == 2000 + i && used[i]->users == 1 && own(16, 2000 + i) == used[i]);
    }
    CHECK(played_get_left() >= MANY * EACH);
}

static void check_peers(void)
{
    rd_ucx_rkey_t *one = rd_ucx_rkey_of(&net, &gdr, "abc", 3), *again = rd_ucx_rkey_of(&net, &gdr, "abc", 3);
    rd_ucx_rkey_t *longer = rd_ucx_rkey_of(&net, &gdr, "abcd", 4), *other = rd_ucx_rkey_of(&net, &gdr, "abd", 3);
    CHECK(one == again && one->users == 2 && longer != one && other != one);
    CHECK(memcmp(one->packed, "abc", 3) == 0 && memcmp(other->packed, "abd", 3) == 0);
    for (int i = 0; i < MANY; i++) {
        rd_ucx_rkey_t *key = rd_ucx_rkey_of(&net, &gdr, &i, sizeof i);
        rd_ucx_rkey_release(&net, &key);
    }
    int n = 0;
    for (const rd_ucx_rkey_t *key = gdr.keys; key != NULL; key = key->next) {
        n++;
    }
    CHECK(n < MANY / 2 && rd_ucx_rkey_of(&net, &gdr, "abc", 3) == one);
}

int main(void)
{
    alarm(30);
    CHECK(!rd_ucx_load());
    check_known();
    check_unknown();
    check_bounds();
    check_peers();
    rd_ucx_keys_free(&net, &net.keys);
    rd_ucx_keys_free(&net, &gdr.keys);
    CHECK(played_get_left() == 0 && net.keys == NULL && gdr.keys == NULL);
    return failures != 0;
}
