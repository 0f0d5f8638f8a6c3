/* Stands in for doctor_pairs.c where rondo is built without CUDA. */
#include "doctor_pairs.h"

#include <stdio.h>

int doctor_pairs(int limit_ms, void (*tried)(void *arg, const pair_t *pair), void *arg, char why[160])
{
    (void)limit_ms, (void)tried, (void)arg;
    snprintf(why, 160, "this rondo is built without CUDA");
    return -1;
}
