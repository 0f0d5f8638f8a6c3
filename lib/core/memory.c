/* Registration and memory that peers can map. On host communicators every path already uses the node's shared memory,
 * so a registration is a promise that is recorded, and memory is page aligned, on huge pages where the system allows
 * it. For GPUs see exec/cuda/register.c. */
#include <stdlib.h>
#include <sys/mman.h>

#include "core/submit.h"
#include "core/comm.h"
#include "exec/cuda/cuda.h"
#include "core/binding.h"

struct rondo_registration {
    rondo_comm_t comm;
    int number; /* on a CUDA communicator: see exec/cuda/cuda.h */
};

#define HUGE_PAGE ((size_t)2 << 20)

rondo_result_t rondo_comm_register(rondo_comm_t comm, void *buffer, size_t bytes, rondo_registration_t *reg)
{
    const char *call = "rondo_comm_register";
    rondo_result_t result = rd_comm_valid(comm, call);

    if (result == RONDO_SUCCESS)
        result = rd_group_refuse(comm, call);
    if (result != RONDO_SUCCESS)
        return result;
    if (!reg || (!buffer && bytes))
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT, "%s: %s is NULL", call, reg ? "buffer" : "reg");
    rondo_registration_t made = malloc(sizeof *made);
    if (!made)
        return rd_error(&comm->ctx, RONDO_ERR_NO_MEMORY, "no memory for a registration");
    *made = (struct rondo_registration){comm, -1};
    if (rd_comm_on_device(comm) && (result = rd_comm_enter(comm)) == RONDO_SUCCESS)
        result = rd_call_spoiled(comm, rd_cuda_register(comm->cuda, buffer, bytes, &made->number));
    if (rd_comm_on_device(comm))
        result = rd_comm_leave(comm, result);
    if (result == RONDO_SUCCESS)
        *reg = made;
    else
        free(made);
    return result;
}

rondo_result_t rondo_comm_deregister(rondo_comm_t comm, rondo_registration_t reg)
{
    const char *call = "rondo_comm_deregister";
    rondo_result_t result = rd_comm_valid(comm, call);

    if (result == RONDO_SUCCESS)
        result = rd_group_refuse(comm, call);
    if (result != RONDO_SUCCESS)
        return result;
    if (!reg || reg->comm != comm)
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT, "%s: reg is %s", call,
                        reg ? "a registration of another communicator" : "NULL");
    if (rd_comm_on_device(comm) && (result = rd_comm_query(comm, call)) == RONDO_SUCCESS) {
        result = rd_cuda_deregister(comm->cuda, reg->number);
        rd_comm_query_leave(comm);
    }
    free(reg);
    return result;
}

rondo_result_t rondo_registration_window(rondo_comm_t comm, rondo_registration_t reg, rondo_window_t *window)
{
    const char *call = "rondo_registration_window";
    rondo_result_t result = rd_comm_valid(comm, call);

    if (result == RONDO_SUCCESS)
        result = rd_comm_query(comm, call);
    if (result != RONDO_SUCCESS)
        return result;
    *window = rd_comm_on_device(comm) ? (rondo_window_t)(void *)rd_cuda_window_of(comm->cuda, reg->number) : NULL;
    rd_comm_query_leave(comm);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_comm_windows(rondo_comm_t comm)
{
    const char *call = "rondo_comm_windows";
    rondo_result_t result = rd_comm_valid(comm, call);

    if (result == RONDO_SUCCESS && rd_comm_on_device(comm) && (result = rd_comm_query(comm, call)) == RONDO_SUCCESS) {
        rd_cuda_windows(comm->cuda);
        rd_comm_query_leave(comm);
    }
    return result;
}

rondo_result_t rondo_buffer_check(rondo_comm_t comm, const char *call, const char *what, const void *buffer)
{
    rondo_result_t result = rd_comm_valid(comm, call);

    if (result == RONDO_SUCCESS && rd_comm_on_device(comm) && (result = rd_comm_query(comm, call)) == RONDO_SUCCESS) {
        result = rd_cuda_buffer_own(comm->cuda, call, what, buffer);
        rd_comm_query_leave(comm);
    }
    return result;
}

static rondo_result_t alloc_on_device(void **buffer, size_t bytes, rondo_comm_t comm, const char *call)
{
    rondo_result_t result = rd_comm_query(comm, call);

    if (result != RONDO_SUCCESS)
        return result;
    result = rd_cuda_mem_alloc(comm->cuda, buffer, bytes);
    rd_comm_query_leave(comm);
    return result;
}

static rondo_result_t free_on_device(void *buffer, rondo_comm_t comm)
{
    rondo_result_t result = rd_comm_query(comm, "rondo_mem_free");

    if (result != RONDO_SUCCESS)
        return result;
    result = rd_cuda_mem_free(comm->cuda, buffer);
    rd_comm_query_leave(comm);
    return result;
}

rondo_result_t rondo_scratch_alloc(void **buffer, size_t *bytes, rondo_comm_t comm)
{
    const char *call = "rondo_scratch_alloc";
    rondo_result_t result = rd_comm_valid(comm, call);

    if (result != RONDO_SUCCESS)
        return result;
    if (!rd_comm_on_device(comm))
        return rondo_mem_alloc(buffer, *bytes, comm);
    if ((result = rd_comm_query(comm, call)) == RONDO_SUCCESS) {
        result = rd_cuda_scratch_alloc(comm->cuda, buffer, bytes);
        rd_comm_query_leave(comm);
    }
    return result;
}

void rondo_scratch_free(void *buffer, size_t bytes, rondo_comm_t comm)
{
    const char *call = "rondo_scratch_free";

    if (rd_comm_valid_suspended(comm, call) != RONDO_SUCCESS)
        return;
    if (!rd_comm_on_device(comm)) {
        (void)rondo_mem_free(buffer, comm);
    } else if (rd_comm_query(comm, call) == RONDO_SUCCESS) {
        rd_cuda_scratch_free(comm->cuda, buffer, bytes);
        rd_comm_query_leave(comm);
    }
}

/* The mapping's length is stored on a page of its own in front of the buffer. */
rondo_result_t rondo_mem_alloc(void **buffer, size_t bytes, rondo_comm_t comm)
{
    const char *call = "rondo_mem_alloc";
    rondo_result_t result = rd_comm_valid(comm, call);
    const size_t page = 4096;

    if (result != RONDO_SUCCESS)
        return result;
    if (!buffer)
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT, "%s: buffer is NULL", call);
    if (rd_comm_on_device(comm))
        return alloc_on_device(buffer, bytes, comm, call);
    if (bytes > SIZE_MAX / 2)
        return rd_error(&comm->ctx, RONDO_ERR_NO_MEMORY, "%s: %zu bytes are more than there can be", call, bytes);
    size_t whole = (bytes + 2 * page - 1) / page * page;
    char *base = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return rd_error(&comm->ctx, RONDO_ERR_NO_MEMORY, "%s: no memory for %zu bytes", call, bytes);
    if (comm->env.huge_pages && whole >= HUGE_PAGE)
        (void)madvise(base, whole, MADV_HUGEPAGE); /* only advice: a refusal costs nothing but speed */
    *(size_t *)(void *)base = whole;
    *buffer = base + page;
    return RONDO_SUCCESS;
}

rondo_result_t rondo_mem_free(void *buffer, rondo_comm_t comm)
{
    rondo_result_t result = rd_comm_valid_suspended(comm, "rondo_mem_free");

    if (result != RONDO_SUCCESS || !buffer)
        return result;
    if (rd_comm_on_device(comm))
        return free_on_device(buffer, comm);
    if ((uintptr_t)buffer % 4096)
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT, "rondo_mem_free: %p is not from rondo_mem_alloc",
                        buffer);
    char *base = (char *)buffer - 4096;
    munmap(base, *(size_t *)(void *)base);
    return RONDO_SUCCESS;
}
