/* See poor.c. A test that is not linked with it finds NULL here. */
#ifndef SIM_POOR_H
#define SIM_POOR_H

__attribute__((weak)) void sim_poor(long k);
__attribute__((weak)) int sim_poor_end(void); /* how often this thread got none */
/* For what is not to be refused in between. */
__attribute__((weak)) long sim_poor_pause(void);
__attribute__((weak)) void sim_poor_go_on(long paused);

#endif
