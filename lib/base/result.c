/* The names of the results. */
#include <rondo.h>

const char *rondo_result_string(rondo_result_t result)
{
    switch (result) {
    case RONDO_SUCCESS:
        return "success";
    case RONDO_IN_PROGRESS:
        return "in progress";
    case RONDO_ERR_INVALID_ARGUMENT:
        return "invalid argument";
    case RONDO_ERR_INVALID_USAGE:
        return "invalid usage";
    case RONDO_ERR_UNSUPPORTED:
        return "unsupported";
    case RONDO_ERR_NO_MEMORY:
        return "no memory";
    case RONDO_ERR_SYSTEM:
        return "system call failed";
    case RONDO_ERR_CUDA:
        return "CUDA call failed";
    case RONDO_ERR_INTERNAL:
        return "internal error";
    case RONDO_ERR_REMOTE:
        return "another rank died, left or failed";
    case RONDO_ERR_TIMEOUT:
        return "timeout";
    case RONDO_ERR_ABORTED:
        return "aborted";
    case RONDO_ERR_MISMATCH:
        return "ranks called different operations";
    case RONDO_ERR_NAN:
        return "an input is not a number";
    }
    return "unknown result";
}
