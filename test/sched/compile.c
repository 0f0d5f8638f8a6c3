/* The compiler, step by step: what it makes of small schedules, that a ring's program does not grow with the ranks,
 * that fused steps on one credit hang and the checker says so, and that mistakes of a schedule come back as sentences.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sched/list.h"
#include "sched/model.h"

static int failures;
static char text[4096];

static void add_line(void *arg, const char *line)
{
    size_t at = strlen(text);

    (void)arg;
    if (strncmp(line, "rank", 4) != 0)
        snprintf(text + at, sizeof(text) - at, "%s\n", line);
}

static void expect(const char *what, rd_steps_t *s, int fuse, const char *want)
{
    rd_program_t *p = NULL;
    const char *why = NULL;

    text[0] = '\0';
    if (rd_compile(s, fuse, &p, &why) == 0)
        rd_program_print(p, 0, add_line, NULL);
    else
        snprintf(text, sizeof(text), "error: %s\n", why);
    if (strcmp(text, want) != 0) {
        printf("%s, fuse %d: want\n%sgot\n%s", what, fuse, want, text);
        failures++;
    }
    if (why == NULL)
        rd_program_free(p);
    rd_steps_free(s);
}

static rd_steps_t *lane(int nchunks, int channel)
{
    rd_steps_t *s = rd_steps_create(nchunks);

    rd_steps_lane(s, channel);
    return s;
}

static rd_steps_t *forward(int chunk)
{
    rd_steps_t *s = lane(2, 0);

    rd_step_recv(s, rd_out(0), 0, 3);
    rd_step_send(s, rd_out(0), chunk, 5);
    return s;
}

/* A receive into scratch that a later step reads, with something between or not. */
static rd_steps_t *sum(int apart)
{
    rd_steps_t *s = lane(2, 1);
    rd_end_t src[2] = {rd_in(0), rd_tmp(7)}, dst = rd_peer(1);

    rd_step_recv(s, rd_tmp(7), 0, 2);
    if (apart)
        rd_step_recv(s, rd_out(1), 1, 2);
    rd_step(s, 0, 2, src, 1, &dst);
    return s;
}

static rd_steps_t *repeats(void)
{
    rd_steps_t *s = lane(5, 0);

    rd_step_recv(s, rd_out(3), 3, 1);
    rd_step_repeat(s, 4, -1);
    return s;
}

/* Two names that never live together, one that does with both, one that nobody reads. */
static rd_steps_t *scratch(void)
{
    rd_steps_t *s = lane(1, 0);

    for (int name = 3; name < 6; name++)
        rd_step_copy(s, rd_tmp(name), rd_in(0), 0);
    for (int name = 3; name < 5; name++) {
        rd_step_copy(s, rd_tmp(9), rd_tmp(name), 0);
        rd_step_copy(s, rd_out(0), rd_tmp(9), 0);
    }
    return s;
}

/* A lane of which nothing is left. */
static rd_steps_t *idle(void)
{
    rd_steps_t *s = lane(1, 0);

    rd_step_copy(s, rd_out(0), rd_out(0), 0);
    rd_steps_lane(s, 1);
    rd_step_send(s, rd_out(0), 0, 1);
    return s;
}

/* A message that is read twice, or by a step over another chunk: it has to lie in scratch. */
static rd_steps_t *kept(int chunk)
{
    rd_steps_t *s = lane(2, 0);
    rd_end_t src[2] = {rd_in(chunk), rd_tmp(0)}, dst = rd_out(chunk);

    rd_step_recv(s, rd_tmp(0), 0, 1);
    rd_step(s, chunk, 2, src, 1, &dst);
    if (chunk == 0)
        rd_step_send(s, rd_tmp(0), 0, 2);
    return s;
}

/* Scratch stays where it is while chunks advance. */
static rd_steps_t *spread(void)
{
    rd_steps_t *s = lane(3, 0);

    rd_step_copy(s, rd_tmp(0), rd_in(0), 0);
    for (int c = 0; c < 3; c++)
        rd_step_copy(s, rd_out(c), rd_tmp(0), c);
    return s;
}

static void check_fusing(void)
{
    expect("forward", forward(0), 0, "  lane 0, channel 0\n    out 0 <- peer 3\n    peer 5 <- out 0\n");
    expect("forward", forward(0), 1, "  lane 0, channel 0\n    out 0, peer 5 <- peer 3\n");
    expect("other chunk", forward(1), 1, "  lane 0, channel 0\n    out 0 <- peer 3\n    peer 5 <- out 0\n");
    expect("sum", sum(0), 0, "  lane 0, channel 1\n    tmp 0 <- peer 2\n    peer 1 <- in 0 + tmp 0\n");
    expect("sum", sum(0), 1, "  lane 0, channel 1\n    peer 1 <- in 0 + peer 2\n");
    expect("sum apart", sum(1), 1,
           "  lane 0, channel 1\n    tmp 0 <- peer 2\n    out 1 <- peer 2\n    peer 1 <- in 0 + tmp 0\n");
    expect("repeat", repeats(), 0, "  lane 0, channel 0\n    out 3 <- peer 1      x 4, stride 4\n");
    expect("read twice", kept(0), 1,
           "  lane 0, channel 0\n    tmp 0 <- peer 1\n    out 0 <- in 0 + tmp 0\n    peer 2 <- tmp 0\n");
    expect("read for another chunk", kept(1), 1,
           "  lane 0, channel 0\n    tmp 0 <- peer 1\n    out 1 <- in 1 + tmp 0\n");
    expect("spread", spread(), 0,
           "  lane 0, channel 0\n    tmp 0 <- in 0\n    out 0 <- tmp 0\n    out 1 <- tmp 0\n    out 2 <- tmp 0\n");
    expect("idle lane", idle(), 1, "  lane 0, channel 1\n    peer 1 <- out 0\n");
    expect("scratch", scratch(), 0,
           "  lane 0, channel 0\n    tmp 0 <- in 0\n    tmp 1 <- in 0\n    tmp 2 <- tmp 0\n    out 0 <- tmp 2\n"
           "    tmp 2 <- tmp 1\n    out 0 <- tmp 2\n");
}

static void check_errors(void)
{
    rd_end_t many[RD_MAX_ENDS + 1] = {{0, 0}}, dst = rd_out(0);
    rd_steps_t *s;

    s = rd_steps_create(1);
    rd_step_copy(s, rd_out(0), rd_in(0), 0);
    expect("no lane", s, 1, "error: a step before the first lane\n");
    s = lane(1, RD_CHANNELS);
    expect("channel", s, 1, "error: a lane on a channel that does not exist\n");
    s = lane(1, 0);
    rd_step(s, 0, RD_MAX_ENDS + 1, many, 1, &dst);
    expect("ends", s, 1, "error: a step with no or too many ends\n");
    s = lane(1, 0);
    rd_step_copy(s, rd_out(1), rd_in(1), 1);
    expect("chunk", s, 1, "error: a step over a chunk that does not exist\n");
    s = lane(1, 0);
    rd_step_send(s, rd_in(0), 0, 1);
    rd_steps_lane(s, 0);
    rd_step_send(s, rd_in(0), 0, 1);
    expect("shared", s, 1, "error: two lanes of a schedule share a connection\n");
}

static void check_ring(void)
{
    static const rd_coll_t colls[] = {RD_ALLREDUCE, RD_ALLGATHER, RD_REDUCE_SCATTER, RD_BROADCAST, RD_REDUCE};

    for (int c = 0; c < 5; c++)
        for (int n = 8; n <= 2048; n *= 16) {
            rd_shape_t shape = {n, 1, NULL};
            rd_sched_args_t args = {&shape, colls[c], n / 3, 0, 0, 0};
            rd_program_t *p;
            const char *why;
            rd_steps_t *s = rd_algo_find("ring")->emit(&args);

            if (rd_compile(s, 1, &p, &why) != 0 || p->nsteps > 5) {
                printf("ring %s, %d ranks: does not fold\n", rd_coll_name(colls[c]), n);
                failures++;
            } else {
                rd_program_free(p);
            }
            rd_steps_free(s);
        }
}

/* Who is inside one tree is a leaf of the other: an inner rank sends up once and down twice, a leaf up once. */
static void check_trees(void)
{
    for (int n = 2; n < 200; n++)
        for (int rank = 0; rank < n; rank++) {
            rd_shape_t shape = {n, 1, NULL};
            rd_sched_args_t args = {&shape, RD_ALLREDUCE, rank, 0, 0, 0};
            rd_steps_t *s = rd_algo_find("tree")->emit(&args);
            rd_program_t *p;
            const char *why;

            if (rd_compile(s, 1, &p, &why) != 0 || p->nsends > 4) {
                printf("tree, %d ranks: rank %d is inside both\n", n, rank);
                failures++;
            } else {
                rd_program_free(p);
            }
            rd_steps_free(s);
        }
}

/* A ring of fused steps waits for itself on one credit. */
static void check_one_credit(void)
{
    rd_shape_t shape = {4, 1, NULL};
    rd_sched_args_t args = {&shape, RD_ALLGATHER, 0, 0, 0, 0};
    model_run_t run = {.credits = 1, .passes = 2};
    const char *why = NULL;
    model_t *m = model_build(rd_algo_find("ring"), &args, 1, &why);

    why = m != NULL ? model_run(m, &run) : NULL;
    if (why == NULL || strstr(why, "deadlock") == NULL) {
        printf("a deadlock was not seen: %s\n", why != NULL ? why : "all went well");
        failures++;
    }
    if (m != NULL)
        model_free(m);
}

int main(void)
{
    alarm(60);
    check_fusing();
    check_errors();
    check_ring();
    check_trees();
    check_one_credit();
    return failures > 0;
}
