/* What a process does that has not ended. One that dumps core has not, for as long as that takes, and its pidfd and its
 * sockets say nothing; but none of its threads ever runs again. One that is about to end has closed its sockets before
 * its pidfd says so. */
#ifndef RD_TRANSPORT_CORE_DUMP_H
#define RD_TRANSPORT_CORE_DUMP_H

#include <stdbool.h>
#include <sys/types.h>

/* Returns the process of a pidfd as /proc here numbers it, or 0 if that is unknown. */
pid_t rd_pidfd_pid(int pidfd);
/* Returns true if the process dumps core now. False, too, if /proc does not tell. */
bool rd_dumps_core(pid_t pid);
/* Returns true if the process of a pidfd lives and does not end just now. False, too, if /proc does not tell. */
bool rd_pidfd_goes_on(int pidfd);

#endif
