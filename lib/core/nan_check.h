/* RONDO_NAN_CHECK: before a call on host memory begins, this rank's input is looked through for values that are not a
 * number. What is looked at is what the call reads on this rank: of a broadcast and a scatter at the root alone, of a
 * message at its sender, of a barrier nothing. */
#ifndef RD_CORE_NAN_CHECK_H
#define RD_CORE_NAN_CHECK_H

#include "core/comm.h"
#include "plan/call.h"

typedef enum rd_nan_mode { RD_NAN_IGNORED, RD_NAN_WARNS, RD_NAN_FAILS } rd_nan_mode_t;

#define RD_NAN_SAID 32

/* The kinds of calls that were warned of, by hash, the last ones. */
typedef struct rd_nan_check {
    rd_nan_mode_t mode;
    uint64_t said[RD_NAN_SAID];
    unsigned nsaid;
} rd_nan_check_t;

rd_nan_mode_t rd_nan_mode(const rd_env_t *env);
/* Return RONDO_ERR_NAN if the communicator has failed for it. From inside the communicator. */
rondo_result_t rd_nan_collective(rondo_comm_t comm, rd_nan_check_t *check, const rd_call_t *call);
rondo_result_t rd_nan_message(rondo_comm_t comm, rd_nan_check_t *check, const rd_message_t *message);

#endif
