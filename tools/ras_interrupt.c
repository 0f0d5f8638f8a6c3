/* Commands that go on for a while end when they are interrupted, in order. */
#include <signal.h>

#include "ras.h"

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    interrupted = number;
}

int ras_interrupted(void)
{
    return interrupted;
}

void ras_on_interrupt(void)
{
    struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART: what waits goes on at once */

    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGHUP, &action, NULL);
}
