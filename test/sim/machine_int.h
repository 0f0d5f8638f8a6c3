/* What the files of the machine share: its fibers, with the stores that each holds back, in warps, blocks and grids,
 * and what one file calls of another. */
#ifndef TEST_SIM_MACHINE_INT_H
#define TEST_SIM_MACHINE_INT_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <atomic>
#include <memory>
#include <vector>

#include "gpu.cuh"
#include "sim/fiber.h"
#include "sim/machine.h"
#include "sim/machine_lines.h"
#include "sim/order.h"

namespace machine
{

constexpr unsigned LANES = 32;
constexpr unsigned AWAITED = 2048;
constexpr double ASKS_S = 1e-3; /* seconds until all fibers look themselves: they count polls and time */

inline double now()
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct fiber_t;
struct grid_t;
struct machine_t;

struct store_t {
    char *at;
    uint32_t bytes; /* 4, 8, or 128: a line */
    bool late;      /* comes out when nothing else can be done, or nothing else has moved for long */
    uint64_t data[LINE / 8];
};

struct meeting_t { /* of the lanes of a warp, or the threads of a barrier */
    unsigned arrived = 0;
    bool all = true, any = false;
    std::vector<fiber_t *> waiting;
    order_meeting_t order;
};

struct warp_t {
    meeting_t meeting;
    watch_t watch;
    char *at[LANES];
    uint4 value[LANES];
    const mark_t *mark[LANES];
    bool result;
};

struct barrier_t {
    meeting_t meeting;
    bool result;
};

struct block_t {
    barrier_t barrier[16];
    std::unique_ptr<uint4[]> shared;
    std::vector<uint4> fixed;
    std::vector<warp_t> warps;
};

enum state_t { RUNNABLE, MEETING, ASLEEP, CALLED, ENDED };

struct fiber_t {
    context_t context;
    char *stack;
    grid_t *grid;
    block_t *block;
    warp_t *warp;
    unsigned thread, block_index, lane;
    state_t state;
    const char *what; /* it waits for */
    watch_t watch;
    watch_t *sleeps_on;
    unsigned sleeper; /* its place among its grid's sleepers */
    std::vector<store_t> buffer;
    bool listed; /* among those with a buffer that is not empty */
    unsigned fences = 0;
    order_t order;

    /* grid_begin sets the rest. */
    fiber_t()
    {
    }
};

struct grid_t {
    const rd_sim_launch_t *launch;
    machine_t *machine;
    std::vector<block_t> blocks;
    std::vector<fiber_t> fibers;
    std::vector<fiber_t *> runnable;
    std::vector<fiber_t *> asleep;
    std::vector<char *> stacks; /* that nobody uses */
    unsigned live = 0;
    order_grid_t order;

    ~grid_t();
};

struct machine_t {
    context_t scheduler;
    std::vector<std::unique_ptr<grid_t>> grids; /* one for each rank */
    std::vector<fiber_t *> holding;             /* fibers whose buffers are not empty */
    link_t *awaited[AWAITED] = {};              /* sleepers by the places of their lines */
    std::vector<fiber_t *> called;              /* sleepers that are about to wake */
    uint64_t random;
    uint64_t progress = 0; /* anything but looking */
    uint64_t last_progress = 0;
    uint64_t outs_seen; /* the changes of lines that sleepers have been told of, or that were before the run */
    uint64_t trace = 0; /* which fibers have gone on, in their order */
    uint64_t moved = 0, stuck = 0; /* the progress at the last step, the steps since it changed */
    uint32_t clock = 0;
    uint32_t rounds = 0, ms = 1;                 /* idle ones: since the last progress, in all */
    double since = now(), looked = 0, asked = 0; /* asked: when all were woken last */
    double patient = ASKS_S;                     /* seconds until they are woken again */
    unsigned favourite = 0, steps = 0, lazy = 0;
    bool alone; /* no other thread or process takes part */

    uint32_t draw(uint32_t below)
    {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        return (uint32_t)(random * 0x2545f4914f6cdd1dull >> 32) % below;
    }
};

extern __thread fiber_t *self; /* the fiber that runs on this thread */

/* ---- machine_faults.cc: the fault that is planted, and the words that it is about. Not thread_local: that would ask
 * at each access whether they have been initialised */
extern __thread rd_sim_fault_t fault;
extern __thread const char *fault_from, *fault_to;
void fault_begin(); /* before a grid: the fault is the one of SIM_PLANT, unless rd_sim_break has set one */

/* ---- machine_stores.cc: stores that are under way */
void push(fiber_t *f, char *at, uint32_t bytes, const void *data);
void came_out(machine_t *m, const void *at);
void out_all(fiber_t *f);
void out_overlapping(fiber_t *f, const char *at, size_t bytes);
void out_random(machine_t *m, bool forced);

/* ---- machine.cc: the fiber that goes on next, or null: none can, or they have looked in vain for too long */
fiber_t *next_fiber(machine_t *m);

/* ---- machine_waits.cc: giving way, waiting, and going on */
void wake(fiber_t *f);
void pause(state_t state, const char *what);
void maybe_give_way();
/* Before `bytes` at `p` are read: sleeps if all that there is to see has been seen. */
void look(watch_t *watch, const void *p, size_t bytes);
/* True for the last one, who does what there is to do and then calls meeting_over. */
bool barrier(meeting_t *m, unsigned members, bool x, const char *what);
void meeting_over(meeting_t *m);

/* ---- machine_sleepers.cc */
void sleep_on(watch_t *watch);
void wake_changed(machine_t *m);   /* those for whose lines a change has been counted */
void wake_differing(machine_t *m); /* those whose lines hold something else by now */
void wake_all(machine_t *m);

/* ---- machine_grid.cc: a grid's fibers and their stacks */
void grid_begin(grid_t *g, const rd_sim_launch_t *launch);
void grid_end(grid_t *g);
void throw_away(machine_t *m); /* all grids, wherever their fibers are */

/* ---- machine_threads.cc */
bool warp_vote(bool x, const char *what);
/* Together with order_arrive: a barrier orders what was done before it by any, and behind it by any. */
void barrier_leave(uint64_t *time);

/* ---- machine_stuck.cc */
void say_who_waits(machine_t *m, char *text, size_t size);

} // namespace machine

#endif
