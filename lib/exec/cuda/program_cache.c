/* The programs that a communicator has used, one for each schedule, operation and root. They are compiled once, on the
 * host, and copied into the arguments of a launch; they are not kept on the device. */
#include <stdlib.h>

#include "exec/cuda/cuda_int.h"
#include "kernels/program_bytes.h"

struct rd_cuda_program {
    struct rd_cuda_program *next;
    const rd_algo_t *algo;
    uint32_t coll;
    int root;
    rd_kprogram_t program;
};

static struct rd_cuda_program *find(const rd_cuda_t *cuda, const rd_algo_t *algo, uint32_t coll, int root)
{
    struct rd_cuda_program *p = cuda->programs;

    while (p && (p->algo != algo || p->coll != coll || p->root != root))
        p = p->next;
    return p;
}

rondo_result_t rd_cuda_program(rd_cuda_t *cuda, const rd_klaunch_t *launch, int root, rd_kprogram_t *program)
{
    struct rd_cuda_program *p = find(cuda, launch->algo, launch->coll, root);
    rd_log_ctx_t *ctx = cuda->team->ctx;
    const char *why;

    if (!p) {
        if (!(p = malloc(sizeof *p)))
            return rd_error(ctx, RONDO_ERR_NO_MEMORY, "no memory for a program");
        *p = (struct rd_cuda_program){.next = cuda->programs, .algo = launch->algo, .coll = launch->coll, .root = root};
        const rd_visits_t order = {cuda->visits.is ? cuda->visits.rank : NULL, cuda->visits.visit};
        why = rd_kernel_program_in(p->algo, p->coll, cuda->k.nranks, cuda->k.rank, root, &order, &p->program);
        if (why) {
            free(p);
            return rd_error(ctx, RONDO_ERR_INTERNAL, "%s by %s: %s", rd_coll_name((rd_coll_t)launch->coll),
                            launch->algo->name, why);
        }
        cuda->programs = p;
    }
    *program = p->program;
    return RONDO_SUCCESS;
}

void rd_cuda_programs_free(rd_cuda_t *cuda)
{
    while (cuda->programs) {
        struct rd_cuda_program *p = cuda->programs;
        cuda->programs = p->next;
        free(p);
    }
}
