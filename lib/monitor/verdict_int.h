/* What the rules of a verdict share: verdict.c has those for calls of the host, verdict_device.c those for kernels. */
#ifndef RD_MONITOR_VERDICT_INT_H
#define RD_MONITOR_VERDICT_INT_H

#include "monitor/verdict.h"

/* The first that is said stands, the second is `also`. `rank`: that is named; -1: none. */
__attribute__((format(printf, 4, 5))) void rd_verdict_say(rd_monitor_verdict_t *v, int status, int rank,
                                                          const char *format, ...);
/* The same rank as the look before had it; NULL: it was not there. */
const rd_view_rank_t *rd_verdict_before(const rd_view_comm_t *then, int rank);
/* Has it made no progress between the two looks? Where there was but one, nothing is known of that. */
bool rd_verdict_still(const rd_view_comm_t *then, const rd_view_rank_t *rank);
/* "rank 1 (n1:17) is late, by 1 call: outside, after ...; its process sleeps". `ahead`: by how many calls the
 * others are; 0: unknown. */
void rd_verdict_late_text(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_rank_t *late, uint64_t ahead,
                          char *text, size_t bytes);

/* "; its process computes", or what else it does, or nothing. */
const char *rd_verdict_doing(const rd_view_process_t *process);
/* Has the peer called the other end of a message that a rank is in, of that track? */
typedef enum rd_other_end { RD_END_OWED, RD_END_CALLED, RD_END_UNKNOWN } rd_other_end_t;
rd_other_end_t rd_verdict_other_end(const rd_view_t *view, const rd_view_rank_t *r, const rd_view_rank_t *peer,
                                    int track);
/* Counts the messages of one direction with a peer that have begun. Returns false if the ring does not have all. */
bool rd_verdict_messages(const rd_view_t *view, const rd_view_rank_t *r, rd_track_t track, int peer, uint64_t *count);
/* Does the call that a rank is in hold its thread? A group may have been submitted, and then its thread is free; so it
 * is by calls on a device. Of several calls that are under way at once it is not known which one waits. */
bool rd_verdict_held(const rd_view_t *view, const rd_view_rank_t *r);
/* Is the rank inside one call, which returns when it is over, and are all its calls that are known of one thread? Then
 * it makes no other one before. A group may have been submitted, and then its thread is free. */
bool rd_verdict_held_alone(const rd_view_t *view, const rd_view_rank_t *r, int track);
/* Returns how many calls of a rank are under way. */
uint64_t rd_verdict_under_way(const rd_monitor_comm_t *comm);
/* Are all calls of a rank this thread's, as far as that is known? An event is of the thread that made the first call of
 * its run, and the board has the one that has waited last: where there are several, only that tells of a repetition. */
bool rd_verdict_calls_alone(const rd_view_t *view, const rd_view_rank_t *rank, uint64_t thread);
/* Finds another communicator in whose call a rank of `comm` is, and its rank there. */
const rd_view_comm_t *rd_verdict_elsewhere(const rd_view_t *view, const rd_view_comm_t *comm,
                                           const rd_view_rank_t *rank, const rd_view_rank_t **there);
/* What is said behind the name of a communicator where another one's looks the same: the number by which rondo-ras
 * shows it. */
#define RD_VERDICT_NUMBER_BYTES 24
const char *rd_verdict_number_of(const rd_view_comm_t *comm, const rd_view_comm_t *other,
                                 char text[RD_VERDICT_NUMBER_BYTES]);
/* Do the waits lead from `late`, for which `waiter` waits, back to that by other communicators? Returns true with a
 * verdict if they do. */
bool rd_verdict_order(const rd_view_t *view, const rd_view_comm_t *comm, const rd_view_rank_t *waiter,
                      const rd_view_rank_t *late, rd_monitor_verdict_t *verdict);
/* Of a rank that is late, as its thread is in another communicator: the rank that its waits there lead to, over any
 * number of communicators, which is outside of calls and late; NULL: it is in none, or they lead to no such rank. */
const rd_view_rank_t *rd_verdict_root(const rd_view_t *view, const rd_view_comm_t *comm, const rd_view_rank_t *late);
/* Of a rank that is late, as a collective waits for it: where do the waits of its thread lead to another node? */
void rd_verdict_find_hop(const rd_view_t *view, const rd_view_comm_t *comm, const rd_view_rank_t *late,
                         rd_monitor_verdict_t *verdict);
/* The waits of a communicator of host memory lead from `on` back to it. */
void rd_verdict_circle(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_rank_t *on,
                       rd_monitor_verdict_t *v);
/* Is there a rank that comes late again and again? Adds that to the verdict. */
void rd_verdict_slow(const rd_view_t *view, const rd_view_comm_t *c, rd_monitor_verdict_t *v);
/* The same of links between nodes. */
void rd_verdict_link(const rd_view_t *view, const rd_view_comm_t *c, rd_monitor_verdict_t *v);
/* Makes a finding of something slow the verdict, instead of "unknown", or else what comes second. `rank`: -1 for a
 * link. */
void rd_verdict_say_slow(rd_monitor_verdict_t *v, int rank, const char *text);
/* The clock of a rank's host at the last look, in ms. */
int64_t rd_verdict_clock(const rd_view_t *view, const rd_view_rank_t *rank);

/* Of a communicator on devices: do the ranks that have enqueued this collective call the same? Returns true with a
 * verdict if they do not. */
bool rd_verdict_unlike(const rd_view_t *view, const rd_view_comm_t *c, uint64_t number, rd_monitor_verdict_t *v);
/* Of a communicator on devices: whom kernels wait for. `then`: the look before. */
void rd_verdict_kernels(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_comm_t *then,
                        rd_monitor_verdict_t *v);
/* The same for the kernel of one rank, by the last look alone. Returns false if none of its kernels waits. */
bool rd_verdict_kernel(const rd_view_t *view, const rd_view_comm_t *c, int rank, rd_monitor_verdict_t *v);

#endif
