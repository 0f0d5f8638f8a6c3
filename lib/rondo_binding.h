/* For rondo's bindings to other languages, which see of an argument what C does not. Not installed: programs have no
 * use for it.
 */
#ifndef RONDO_BINDING_H
#define RONDO_BINDING_H

#include <rondo.h>

#pragma GCC visibility push(default)

/* The binding refuses a call before rondo has seen it, and returns `result`. Like any refusal it leaves the
 * communicator unharmed, is what rondo_last_error says, and inside a group what its end returns. The sentence goes on
 * after "CALL: ".
 */
rondo_result_t rondo_call_refuse(rondo_comm_t comm, rondo_result_t result, const char *call, const char *sentence);

#pragma GCC visibility pop
#endif
