/* What ThreadSanitizer is told of the machine (order.cc). Machines that are not for it have order_none.h.
 *
 * Each CUDA thread is a thread of its own to it (a fiber), and switching between them orders nothing, though all run on
 * one thread of the CPU. Order comes from what orders on a GPU alone:
 *
 *   barriers   warp_sync and what begins with it, group_any, block_any. Not votes and shuffles: they wait for the other
 *              lanes, but promise nothing about memory
 *   fences     what a thread did before its fence comes before what another does behind its own, if that one has read
 *              meanwhile what the first has stored behind the fence. ThreadSanitizer knows no fences. So each makes a
 *              mark, which holds the thread's time; stores bear their thread's last mark, and who loads one keeps it
 *              until a fence of its own takes it, or takes it at once (word_acquire, stores_follow)
 *   launches   a kernel's end, for the next one of its queue from gpu_begin() on, and for the rank's host
 *
 * Words and lines are relaxed atomics, so what says by itself that it is there races with nobody. Plain are the user's
 * buffers, shared memory, and what far_store writes.
 *
 * What the machine does for itself is not looked at, nor are the values of words and lines: that is done in the name of
 * the thread that runs it, and its files are compiled without -fsanitize=thread, but for touch.cc. All this is for
 * rd_sim_queues alone. */
#ifndef TEST_SIM_ORDER_H
#define TEST_SIM_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include <memory>
#include <vector>

struct stamp_t {
    uint64_t time; /* its address is what ThreadSanitizer keeps a time for */
    uint64_t by;   /* a thread's number: its later marks hold its earlier ones */
    uint64_t number;
};
typedef std::shared_ptr<stamp_t> mark_t;

/* Of a CUDA thread. */
struct order_t {
    void *thread; /* ThreadSanitizer's */
    uint64_t number;
    mark_t last, now;         /* its last fence; order_mark's */
    std::vector<mark_t> seen; /* what it has loaded since then bore these */
};

/* Of a grid. */
struct order_grid_t {
    int rank;
    mark_t before, begin, end; /* begin: what the host has done before it launched */
};

/* Of threads that meet again and again: some may be at the next meeting before all have left this one. */
struct order_meeting_t {
    uint64_t time[2];
    unsigned turn = 0;
};

bool order_told(); /* is anybody told at all? Then stores come out at once */

/* ---- by the machine */

void order_begin(int ranks);
void order_over(); /* nothing runs any more, and the caller knows */
void order_grid_begin(order_grid_t *g);
void order_grid_over(const order_grid_t &g); /* its host knows */
void order_thread_begin(order_t *o, const order_grid_t &g, const char *stack, unsigned block, unsigned thread);
void order_thread_lost(const order_t &o); /* it goes on no more, wherever it is */
void order_machine();
void order_read(int rank, const void *p, size_t bytes); /* see rd_sim_read */
/* A thread has stored 4, 8 or 16 bytes that begin at a multiple of that, has loaded them, or has counted there: that
 * leaves the marks of those who have counted before. */
void order_stored(const mark_t &mark, const void *p, size_t bytes);
void order_added(const mark_t &mark, const void *p); /* who reads the sum has read what all have added */
void order_saw(order_t *o, const void *p, size_t bytes);
void order_count(order_t *o, const void *p);

/* ---- by a CUDA thread */

void order_go_on(const order_t &o); /* what follows is done by this one */
void order_thread_run(const order_grid_t &g);
void order_kernel_begin(order_t *o, const order_grid_t &g);
void order_kernel_end(const order_grid_t &g);
void order_fence(order_t *o);
const mark_t &order_mark(order_t *o, bool now); /* its last one, or one that holds all until now */
void order_take(order_t *o);                    /* what it has seen */
void order_take_word(const void *p);            /* what it has seen there */
uint64_t *order_arrive(order_meeting_t *m);
void order_leave(uint64_t *time);

/* 4, 8 or 16 bytes: as atomics, or as a plain store. Nothing is changed. */
void touch_load(const void *p, size_t bytes, void *from);
void touch_store(void *p, size_t bytes, void *from);
void touch_plainly(void *p, size_t bytes, void *from);
void touch_all(const void *p, size_t bytes); /* by plain loads */

/* In a function that kernels call: what the machine does in it. */
struct inside_t {
    const order_t &of;

    explicit inside_t(const order_t &o) : of(o)
    {
        order_machine();
    }

    ~inside_t()
    {
        order_go_on(of);
    }
};

#ifdef ORDER_NONE
#include "sim/order_none.h"
#endif

#endif
