/* Ids on their way over a bootstrap: each rank of it can reveal what another one has concealed, and whoever is not in it
 * can not; nothing of the id can be read, not even whether it is one that went before, and no bit can be changed. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "boot/boot.h"
#include "util/check.h"

#define RANKS 2

typedef struct rank {
    const rondo_unique_id_t *id;
    int rank;
    rd_log_ctx_t ctx;
    rd_stop_t stop;
    rd_boot_t *boot;
} rank_t;

static void *join(void *arg)
{
    rank_t *r = arg;
    rd_env_t env;

    CHECK(rd_env_read(&env) == RONDO_SUCCESS);
    CHECK(rd_boot_create(&r->boot, r->id, r->rank, RANKS, &env, &r->ctx, &r->stop) == RONDO_SUCCESS);
    return NULL;
}

static void make(rank_t ranks[RANKS], rondo_unique_id_t *id)
{
    pthread_t threads[RANKS];

    CHECK(rondo_unique_id_create(id) == RONDO_SUCCESS);
    for (int r = 0; r < RANKS; r++) {
        ranks[r] = (rank_t){.id = id, .rank = r, .ctx = {.name = "test", .rank = r, .nranks = RANKS}};
        CHECK(pthread_create(&threads[r], NULL, join, &ranks[r]) == 0);
    }
    for (int r = 0; r < RANKS; r++)
        CHECK(pthread_join(threads[r], NULL) == 0);
}

static void end(rank_t ranks[RANKS])
{
    for (int r = 0; r < RANKS; r++)
        rd_boot_farewell(ranks[r].boot, RONDO_SUCCESS, -1);
    for (int r = 0; r < RANKS; r++)
        rd_boot_destroy(ranks[r].boot);
}

/* Returns true if eight bytes of the one that are not all alike are somewhere in the other. */
static int shows(const rd_concealed_id_t *concealed, const rondo_unique_id_t *id)
{
    for (size_t i = 0; i + 8 <= sizeof id->bytes; i++)
        if (memcmp(id->bytes + i, id->bytes + i + 1, 7) != 0 &&
            memmem(concealed->bytes, sizeof concealed->bytes, id->bytes + i, 8))
            return 1;
    return 0;
}

int main(void)
{
    rondo_unique_id_t ours, theirs, sent, got;
    rank_t in[RANKS], out[RANKS];
    rd_concealed_id_t concealed, again;

    alarm(60);
    make(in, &ours);
    make(out, &theirs);
    CHECK(rondo_unique_id_create(&sent) == RONDO_SUCCESS);
    for (int r = 0; r < RANKS; r++) {
        rd_boot_conceal(in[r].boot, &sent, &concealed);
        for (int to = 0; to < RANKS; to++) {
            memset(&got, 0, sizeof got);
            CHECK(rd_boot_reveal(in[to].boot, &concealed, &got) == RONDO_SUCCESS);
            CHECK(memcmp(&got, &sent, sizeof got) == 0);
            CHECK(rd_boot_reveal(out[to].boot, &concealed, &got) == RONDO_ERR_SYSTEM);
        }
        CHECK(!shows(&concealed, &sent));
    }
    rd_boot_conceal(in[0].boot, &sent, &again);
    CHECK(memcmp(&again, &concealed, sizeof again) != 0 && !shows(&again, (const rondo_unique_id_t *)&concealed));
    for (size_t bit = 0; bit < 8 * sizeof concealed.bytes; bit++) {
        again = concealed;
        again.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        CHECK(rd_boot_reveal(in[0].boot, &again, &got) == RONDO_ERR_SYSTEM);
    }
    rd_boot_cancel(&sent, 1, 0, RONDO_ERR_ABORTED);
    end(in);
    end(out);
    return failures != 0;
}
