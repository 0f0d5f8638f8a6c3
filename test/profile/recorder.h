/* What a recording profiler plugin has seen, for the test that has it loaded. */
#ifndef TEST_PROFILE_RECORDER_H
#define TEST_PROFILE_RECORDER_H

#include <stdint.h>

#define RECORDER_MOST 4096
#define RECORDER_COMMS 16

/* An event, from its start on. Its address is the handle. */
typedef struct recorder_event {
    int comm; /* index of the context; -1: none of ours */
    unsigned type;
    void *parent, *group;
    int rank;
    /* What the version says of it; -1, NULL or 0 where it says nothing. */
    char func[24], datatype[24], algo[24], proto[24];
    int func_number, type_number, algo_number, proto_number;
    uint64_t count, number;
    int root, depth, channels;
    uint64_t begun, ended; /* times of a channel */
    const void *in, *out;
    int started, stopped; /* order, from 1 on; 0: not yet */
    int stops, states[32];
} recorder_event_t;

typedef struct recorder {
    int version;
    int inits, finals; /* of those, how many communicators were refused */
    int refused;
    int order;  /* of the last call of the plugin */
    int wrong;  /* calls that must not be: after a stop or a finalize, for a strange handle */
    int most;   /* events for which there was no room */
    int errors; /* that were returned */
    int *mask;  /* rondo's */
    struct {
        char name[64];
        uint64_t id;
        int nodes, nranks, rank, over;
    } comms[RECORDER_COMMS];
    int nevents;
    recorder_event_t events[RECORDER_MOST];
} recorder_t;

/* RECORDER_MASK in the environment: the mask to begin with. RECORDER_WANTS: the types that get a handle.
 * RECORDER_REFUSE: the number of the communicator that is refused, from 1 on. RECORDER_ERRORS: all calls but `init`
 * return an error. */
#define RECORDER_SYMBOL "recorder_seen"

#endif
