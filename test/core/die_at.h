/* A rank that ends by SIGKILL: at a moment, or at the k-th of the calls that the bootstrap makes at every step. */
#ifndef TEST_CORE_DIE_AT_H
#define TEST_CORE_DIE_AT_H

#include "util/harness.h"

/* `calls`: that it makes before; -1: it dies after `delay_us`. *died_us, in shared memory, is then when. */
void die_at(test_rank_t *t, int calls, unsigned delay_us, _Atomic int64_t *died_us);
void die_now(void); /* of a rank that has called die_at */

#endif
