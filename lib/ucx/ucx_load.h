/* The functions of UCX that rondo calls. UCX is no library that librondo is linked with: ucx_load.c opens it when the
 * first communicator of several nodes is made. */
#ifndef RD_UCX_UCX_LOAD_H
#define RD_UCX_UCX_LOAD_H

#include <stdbool.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare" /* UCX 1.22's own headers */
#include <ucp/api/ucp.h>
#include <ucs/debug/log_def.h>
#pragma GCC diagnostic pop

/* Each is a function of UCX's without "ucp_". */
#define RD_UCP_FUNCTIONS(F)                                                                                            \
    F(am_data_release)                                                                                                 \
    F(am_recv_data_nbx)                                                                                                \
    F(am_send_nbx)                                                                                                     \
    F(cleanup)                                                                                                         \
    F(config_modify)                                                                                                   \
    F(config_read)                                                                                                     \
    F(config_release)                                                                                                  \
    F(context_print_info)                                                                                              \
    F(context_query)                                                                                                   \
    F(ep_close_nbx)                                                                                                    \
    F(ep_create)                                                                                                       \
    F(ep_flush_nbx)                                                                                                    \
    F(ep_rkey_unpack)                                                                                                  \
    F(get_nbx)                                                                                                         \
    F(get_version)                                                                                                     \
    F(get_version_string)                                                                                              \
    F(init_version)                                                                                                    \
    F(mem_map)                                                                                                         \
    F(mem_unmap)                                                                                                       \
    F(request_free)                                                                                                    \
    F(rkey_buffer_release)                                                                                             \
    F(rkey_destroy)                                                                                                    \
    F(rkey_pack)                                                                                                       \
    F(worker_create)                                                                                                   \
    F(worker_destroy)                                                                                                  \
    F(worker_flush_nbx)                                                                                                \
    F(worker_progress)                                                                                                 \
    F(worker_query)                                                                                                    \
    F(worker_release_address)                                                                                          \
    F(worker_set_am_recv_handler)

/* Those of them that a call of the program may reach, where UCX may calculate: (its type, name, parameters, arguments).
 */
#define RD_UCP_GUARDED(F)                                                                                              \
    F(ucs_status_ptr_t, am_recv_data_nbx,                                                                              \
      (ucp_worker_h worker, void *data, void *to, size_t bytes, const ucp_request_param_t *param),                     \
      (worker, data, to, bytes, param))                                                                                \
    F(ucs_status_ptr_t, am_send_nbx,                                                                                   \
      (ucp_ep_h ep, unsigned id, const void *header, size_t length, const void *from, size_t count,                    \
       const ucp_request_param_t *param),                                                                              \
      (ep, id, header, length, from, count, param))                                                                    \
    F(ucs_status_ptr_t, ep_close_nbx, (ucp_ep_h ep, const ucp_request_param_t *param), (ep, param))                    \
    F(ucs_status_t, ep_create, (ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep),                     \
      (worker, params, ep))                                                                                            \
    F(ucs_status_ptr_t, ep_flush_nbx, (ucp_ep_h ep, const ucp_request_param_t *param), (ep, param))                    \
    F(ucs_status_t, ep_rkey_unpack, (ucp_ep_h ep, const void *packed, ucp_rkey_h *rkey), (ep, packed, rkey))           \
    F(ucs_status_ptr_t, get_nbx,                                                                                       \
      (ucp_ep_h ep, void *to, size_t bytes, uint64_t from, ucp_rkey_h rkey, const ucp_request_param_t *param),         \
      (ep, to, bytes, from, rkey, param))                                                                              \
    F(ucs_status_t, mem_map, (ucp_context_h context, const ucp_mem_map_params_t *params, ucp_mem_h *memory),           \
      (context, params, memory))                                                                                       \
    F(ucs_status_t, mem_unmap, (ucp_context_h context, ucp_mem_h memory), (context, memory))                           \
    F(ucs_status_t, rkey_pack, (ucp_context_h context, ucp_mem_h memory, void **packed, size_t *bytes),                \
      (context, memory, packed, bytes))                                                                                \
    F(ucs_status_ptr_t, worker_flush_nbx, (ucp_worker_h worker, const ucp_request_param_t *param), (worker, param))    \
    F(unsigned, worker_progress, (ucp_worker_h worker), (worker))

typedef struct rd_ucp {
#define RD_UCP_MEMBER(name) __typeof__(ucp_##name) *name;
    RD_UCP_FUNCTIONS(RD_UCP_MEMBER)
#undef RD_UCP_MEMBER
    __typeof__(ucs_log_push_handler) *log_push_handler;
    __typeof__(ucs_status_string) *status_string;
} rd_ucp_t;

/* To be used after rd_ucx_load has succeeded. */
extern rd_ucp_t rd_ucp;

/* Opens UCX, once in a process: returns NULL, or a sentence that says why that is not possible and what to install. */
const char *rd_ucx_load(void);

/* From begin to end, what UCX logs as an error in this thread is noted; end returns true if there was any. */
void rd_ucx_errors_begin(void);
bool rd_ucx_errors_end(void);

/* Called once with the functions that were found. It is a weak function that does nothing: tests put others in their
 * place. */
void rd_ucx_loaded(rd_ucp_t *ucp);

/* Puts the floating-point environment of base/fpenv.h around those of RD_UCP_GUARDED. Defined in ucx_guard.c; called
 * once. */
void rd_ucx_guard(rd_ucp_t *ucp);

#endif
