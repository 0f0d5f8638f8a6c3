/* A program that has called clearenv, or has set environ to NULL, has no environment at all, not even an empty one.
 * getenv takes that as it is; some libraries walk over the variables without asking first (UCX, as it makes a worker,
 * and dies of it).
 * From begin to end such a program has an empty environment. Pairs may overlap, in any threads. */
#ifndef RD_BASE_NO_ENVIRON_H
#define RD_BASE_NO_ENVIRON_H

void rd_no_environ_begin(void);
void rd_no_environ_end(void);

#endif
