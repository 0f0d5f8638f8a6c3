/* Starting a thread with every signal blocked: a new thread inherits the mask of the one that starts it. */
#include "base/thread.h"

int rd_thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
    sigset_t before;
    rd_signals_block(&before);
    int error = pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

void rd_signals_block(sigset_t *before)
{
    sigset_t every;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, before);
}
