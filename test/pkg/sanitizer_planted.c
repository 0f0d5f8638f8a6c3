/* Faults planted on purpose, for test/pkg/sanitizers_find.sh: a build with sanitizers must report each kind that it looks
 * for. What is read too far and raced for is read by the library, so a report also shows that the library is watched.
 *
 *   planted address      an allreduce of one element more than the buffer holds
 *   planted undefined    an overflow of a signed number
 *   planted thread       a buffer is written while an allreduce may read it
 *   planted none         the same program without a fault
 */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo.h>

#define COUNT 1000

static float *in[2];

static void *write_it(void *arg)
{
    float *to = arg;

    for (int i = 0; i < COUNT; i++)
        to[i] = 2;
    return NULL;
}

static int sum(rondo_comm_t *comms, size_t count)
{
    float *out[2];
    int bad = 0;

    rondo_group_start();
    for (int r = 0; r < 2; r++) {
        out[r] = malloc((COUNT + 1) * sizeof(float));
        bad |= rondo_allreduce(in[r], out[r], count, RONDO_FLOAT32, RONDO_SUM, comms[r], NULL) != RONDO_SUCCESS;
    }
    bad |= rondo_group_end() != RONDO_SUCCESS;
    for (int r = 0; r < 2; r++)
        free(out[r]);
    return bad;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "none";
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comms[2];
    pthread_t thread;
    int bad;

    config.device = RONDO_DEVICE_HOST;
    for (int r = 0; r < 2; r++)
        in[r] = calloc(COUNT, sizeof(float));
    if (rondo_comm_create_all(comms, 2, NULL, &config) != RONDO_SUCCESS)
        return 2;
    if (strcmp(what, "thread") == 0) {
        pthread_create(&thread, NULL, write_it, in[0]);
        bad = sum(comms, COUNT);
        pthread_join(thread, NULL);
    } else {
        bad = sum(comms, COUNT + (strcmp(what, "address") == 0));
    }
    if (strcmp(what, "undefined") == 0) {
        volatile int most = INT_MAX;
        printf("%d\n", most + argc);
    }
    for (int r = 0; r < 2; r++) {
        bad |= rondo_comm_destroy(comms[r]) != RONDO_SUCCESS;
        free(in[r]);
    }
    return bad;
}
