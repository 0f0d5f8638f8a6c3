/* RONDO_CHECK=1: every collective is preceded by an exchange of what each rank has asked for, and compared. */
#ifndef RD_CHECK_H
#define RD_CHECK_H

#include "core/submit.h"

/* What a rank has asked for. */
typedef struct rd_asked {
    uint64_t sequence, count;
    int32_t type, op, root;
    char name[20]; /* of the operation */
} rd_asked_t;

void rd_asked_fill(rd_asked_t *asked, const rd_call_t *call, uint64_t sequence);
/* RONDO_ERR_MISMATCH names the ranks and the field that differs, and fails the communicator. */
rondo_result_t rd_asked_compare(rondo_comm_t comm, int rank, const rd_asked_t *asked, int other,
                                const rd_asked_t *others);

typedef struct rd_check rd_check_t;

/* The exchange as a task in front of a collective, for groups; and at once, for a blocking call. */
rondo_result_t rd_check_now(rondo_comm_t comm, const rd_call_t *call);
rondo_result_t rd_check_task(rondo_comm_t comm, const rd_call_t *call, rd_task_t **task);
/* Its number among the communicator's operations: when its group begins, for a group may also be refused. */
void rd_check_number(rondo_comm_t comm, rd_check_t *check);

/* After the exchange. */
rondo_result_t rd_check_compare(rondo_comm_t comm, const rd_check_t *check);
void rd_check_free(rd_check_t *check);

#endif
