/* UCX that fetches host memory by keys as it does a device's: the one who fetches copies, and nobody else has a hand in
 * it. It takes the places of UCX's own functions when rondo has loaded UCX (ucx/ucx_load.h). */
#ifndef PLAYED_GET_H
#define PLAYED_GET_H

int played_get_left(void); /* keys and requests that nobody has given back */
int played_got(void);      /* messages that came so */

#endif
