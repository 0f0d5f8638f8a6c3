/* What rondo-info shows of CUDA: the devices, and for an operation every kernel that could serve it. */
#include <stdlib.h>
#include <string.h>

#include "inside.h"

void rd_cuda_print(FILE *file)
{
    int count = 0, runtime = 0, driver = 0;
    cudaError_t error = cudaGetDeviceCount(&count);

    (void)cudaRuntimeGetVersion(&runtime);
    (void)cudaDriverGetVersion(&driver);
    if (error != cudaSuccess || count == 0) {
        (void)cudaGetLastError();
        fprintf(file, "CUDA          runtime %d.%d, no device: %s\n", runtime / 1000, runtime % 1000 / 10,
                error == cudaSuccess ? "none is visible" : cudaGetErrorString(error));
        return;
    }
    fprintf(file, "CUDA          runtime %d.%d, driver's %d.%d, %d devices\n", runtime / 1000, runtime % 1000 / 10,
            driver / 1000, driver % 1000 / 10, count);
    for (int d = 0; d < count; d++) {
        struct cudaDeviceProp prop;
        char bus[20] = "?";
        if (cudaGetDeviceProperties(&prop, d) != cudaSuccess)
            continue;
        (void)cudaDeviceGetPCIBusId(bus, sizeof bus, d);
        fprintf(file, "              device %d: %s, %s, compute capability %d.%d, %d multiprocessors, %zu MB, reaches", d, prop.name,
                bus, prop.major, prop.minor, prop.multiProcessorCount, prop.totalGlobalMem >> 20);
        for (int p = 0; p < count; p++) {
            int can = 0;
            if (p != d && cudaDeviceCanAccessPeer(&can, d, p) == cudaSuccess && can)
                fprintf(file, " %d", p);
        }
        fputc('\n', file);
    }
}

typedef struct candidate {
    rd_chosen_t chosen;
    const char *why; /* it cannot; NULL: it can */
} candidate_t;

static int cheaper(const void *a, const void *b)
{
    const candidate_t *x = a, *y = b;

    if (!x->why != !y->why)
        return x->why ? 1 : -1;
    return (x->chosen.us > y->chosen.us) - (x->chosen.us < y->chosen.us);
}

static int is_chosen(const rd_chosen_t *a, const rd_chosen_t *b)
{
    return a->launch.kind == b->launch.kind && a->launch.codec == b->launch.codec;
}

rondo_result_t rd_cuda_plan_print(FILE *file, rd_coll_t coll, rondo_type_t type, size_t count, int nranks, int sms,
                                  const rd_env_t *env)
{
    candidate_t list[(RD_K_MESSAGES + 1) * RD_KC_CODECS];
    rd_wanted_t wanted = {(uint32_t)coll, (uint32_t)type, RONDO_SUM, (uint32_t)rondo_type_size(type), count};
    rd_cuda_t *cuda;
    rd_chosen_t best;
    int n = 0;

    if (coll == RD_BARRIER)
        wanted = (rd_wanted_t){RD_ALLREDUCE, RONDO_INT32, RONDO_SUM, 4, count = 1};

    if (nranks < 2 || nranks > RD_KRANKS)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "%d ranks: on CUDA there are plans for 2 to %d", nranks,
                        RD_KRANKS);
    rondo_result_t result = rd_kchoose_names(env, NULL);
    if (result != RONDO_SUCCESS)
        return result;
    if (!(cuda = calloc(1, sizeof *cuda)))
        return rd_error(NULL, RONDO_ERR_NO_MEMORY, "no memory for a plan");
    cuda->k.nranks = nranks;
    cuda->limits.nranks = (uint32_t)nranks;
    cuda->limits.apart = !env->p2p;
    cuda->limits.blocks = (uint32_t)(env->cuda_blocks && env->cuda_blocks < sms ? env->cuda_blocks : sms);
    rd_window_layout(cuda, env, (int)cuda->limits.blocks);
    const char *why = rd_kchoose(&wanted, &cuda->limits, env, &best);
    fprintf(file, "%s of %zu %s on %d GPUs of one node, %d multiprocessors each\n", rd_coll_name(coll), count,
            rd_type_name(type), nranks, sms);
    fprintf(file, "a window of %zu KB%s: %u fifos a pair, two banks of %u KB\n\n", cuda->shared_bytes >> 10,
            env->p2p ? "" : " in pinned host memory (RONDO_P2P=0; times reckoned, not measured)", cuda->limits.fifos,
            cuda->limits.bank >> 10);
    for (int kind = RD_K_ONESHOT; kind <= RD_K_MESSAGES; kind++) {
        for (int codec = 0; codec < RD_KC_CODECS; codec++, n++) {
            list[n].why = NULL;
            if (rd_kchoose_one(&wanted, &cuda->limits, (rd_kkind_t)kind, (rd_kcodec_t)codec, &list[n].chosen,
                               &list[n].why) != 0)
                list[n].chosen.launch = (rd_klaunch_t){.kind = (rd_kkind_t)kind, .codec = (rd_kcodec_t)codec};
        }
    }
    qsort(list, (size_t)n, sizeof *list, cheaper);
    for (int i = 0; i < n; i++) {
        const rd_chosen_t *c = &list[i].chosen;
        fprintf(file, "%c %-9s %-9s", !why && is_chosen(c, &best) ? '*' : ' ', rd_kind_name(c->launch.kind),
                rd_codec_name(c->launch.codec));
        if (list[i].why)
            fprintf(file, "          %s\n", list[i].why);
        else if (c->launch.kind == RD_K_MESSAGES)
            fprintf(file, "%8.1f us\n", c->us);
        else
            fprintf(file, "%8.1f us  %u passes of %u units, %u blocks of %u threads\n", c->us, c->passes, c->units,
                    c->launch.blocks, c->launch.threads);
    }
    free(cuda);
    return why ? rd_error(NULL, RONDO_ERR_UNSUPPORTED, "nothing serves it: %s", why) : RONDO_SUCCESS;
}
