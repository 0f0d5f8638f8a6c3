/* The operations as Fortran calls them, with counts of kind int64. The Makefile generates operations_int32.c from this
 * file by replacing int64. rondo.h describes each operation; glue.c, what happens on the way.
 *
 * Counts are passed by reference and widened without a check, because the operation itself refuses a negative count.
 */
#include "fortran/glue.h"

#pragma GCC visibility push(default)

/* Converts a table of counts or displacements, with an entry for each rank; NULL if it is absent. */
static void table(rd_f_call_t *c, const int64_t *from)
{
    size_t *to = rd_f_table(c, from != NULL);

    for (int rank = 0; to && rank < c->nranks; rank++)
        to[rank] = (size_t)from[rank];
}

void rondo_f_allreduce_int64(const CFI_cdesc_t *send, const CFI_cdesc_t *recv, const int64_t *count, const int *type,
                             const int *op, const rondo_comm_t *comm, const rondo_stream_t *stream, int *ierror)
{
    rd_f_call_t c;

    rd_f_begin(&c, "rondo_allreduce", *comm, ierror);
    rd_f_buffer(&c, "send", send);
    rd_f_buffer(&c, "recv", recv);
    rd_f_type(&c, *type, RD_F_NONE, 0);
    if (c.result == RONDO_SUCCESS)
        c.result = rondo_allreduce(c.address[0], c.address[1], (size_t)*count, (rondo_type_t)*type, *op, *comm,
                                   rd_f_stream(stream));
    rd_f_end(&c);
}

void rondo_f_reduce_int64(const CFI_cdesc_t *send, const CFI_cdesc_t *recv, const int64_t *count, const int *type,
                          const int *op, const int *root, const rondo_comm_t *comm, const rondo_stream_t *stream,
                          int *ierror)
{
    rd_f_call_t c;

    rd_f_begin(&c, "rondo_reduce", *comm, ierror);
    rd_f_buffer(&c, "send", send);
    rd_f_buffer(&c, "recv", recv);
    rd_f_type(&c, *type, 1, *root);
    if (c.result == RONDO_SUCCESS)
        c.result = rondo_reduce(c.address[0], c.address[1], (size_t)*count, (rondo_type_t)*type, *op, *root, *comm,
                                rd_f_stream(stream));
    rd_f_end(&c);
}

void rondo_f_broadcast_int64(const CFI_cdesc_t *send, const CFI_cdesc_t *recv, const int64_t *count, const int *type,
                             const int *root, const rondo_comm_t *comm, const rondo_stream_t *stream, int *ierror)
{
    rd_f_call_t c;

    rd_f_begin(&c, "rondo_broadcast", *comm, ierror);
    rd_f_buffer(&c, "send", send);
    rd_f_buffer(&c, "recv", recv);
    rd_f_type(&c, *type, 0, *root);
    if (c.result == RONDO_SUCCESS)
        c.result = rondo_broadcast(c.address[0], c.address[1], (size_t)*count, (rondo_type_t)*type, *root, *comm,
                                   rd_f_stream(stream));
    rd_f_end(&c);
}

void rondo_f_allgather_int64(const CFI_cdesc_t *send, const CFI_cdesc_t *recv, const int64_t *sendcount,
                             const int *type, const rondo_comm_t *comm, const rondo_stream_t *stream, int *ierror)
{
    rd_f_call_t c;

    rd_f_begin(&c, "rondo_allgather", *comm, ierror);
    rd_f_buffer(&c, "send", send);
    rd_f_buffer(&c, "recv", recv);
    rd_f_type(&c, *type, RD_F_NONE, 0);
    if (c.result == RONDO_SUCCESS)
        c.result = rondo_allgather(c.address[0], c.address[1], (size_t)*sendcount, (rondo_type_t)*type, *comm,
                                   rd_f_stream(stream));
    rd_f_end(&c);
}

void rondo_f_allgatherv_int64(const CFI_cdesc_t *send, const int64_t *sendcount, const CFI_cdesc_t *recv,
                              const int64_t *recvcounts, const int64_t *displs, const int *type,
                              const rondo_comm_t *comm, const rondo_stream_t *stream, int *ierror)
{
    rd_f_call_t c;

    rd_f_begin(&c, "rondo_allgatherv", *comm, ierror);
    rd_f_buffer(&c, "send", send);
    rd_f_buffer(&c, "recv", recv);
    table(&c, recvcounts);
    table(&c, displs);
    rd_f_type(&c, *type, RD_F_NONE, 0);
    if (c.result == RONDO_SUCCESS)
        c.result = rondo_allgatherv(c.address[0], (size_t)*sendcount, c.address[1], c.table[0], c.table[1],
                                    (rondo_type_t)*type, *comm, rd_f_stream(stream));
    rd_f_end(&c);
}

void rondo_f_reduce_scatter_int64(const CFI_cdesc_t *send, const CFI_cdesc_t *recv, const int64_t *recvcount,
                                  const int *type, const int *op, const rondo_comm_t *comm,
                                  const rondo_stream_t *stream, int *ierror)
{
    rd_f_call_t c;

    rd_f_begin(&c, "rondo_reduce_scatter", *comm, ierror);
    rd_f_buffer(&c, "send", send);
    rd_f_buffer(&c, "recv", recv);
    rd_f_type(&c, *type, RD_F_NONE, 0);
    if (c.result == RONDO_SUCCESS)
        c.result = rondo_reduce_scatter(c.address[0], c.address[1], (size_t)*recvcount, (rondo_type_t)*type, *op, *comm,
                                        rd_f_stream(stream));
    rd_f_end(&c);
}

void rondo_f_reduce_scatterv_int64(const CFI_cdesc_t *send, const CFI_cdesc_t *recv, const int64_t *recvcounts,
                                   const int *type, const int *op, const rondo_comm_t *comm,
                                   const rondo_stream_t *stream, int *ierror)
{
    rd_f_call_t c;

    rd_f_begin(&c, "rondo_reduce_scatterv", *comm, ierror);
    rd_f_buffer(&c, "send", send);
    rd_f_buffer(&c, "recv", recv);
    table(&c, recvcounts);
    rd_f_type(&c, *type, RD_F_NONE, 0);
    if (c.result == RONDO_SUCCESS)
        c.result = rondo_reduce_scatterv(c.address[0], c.address[1], c.table[0], (rondo_type_t)*type, *op, *comm,
                                         rd_f_stream(stream));
    rd_f_end(&c);
}

void rondo_f_alltoall_int64(const CFI_cdesc_t *send, const CFI_cdesc_t *recv, const int64_t *count, const int *type,
                            const rondo_comm_t *comm, const rondo_stream_t *stream, int *ierror)
{
    rd_f_call_t c;

    rd_f_begin(&c, "rondo_alltoall", *comm, ierror);
    rd_f_buffer(&c, "send", send);
    rd_f_buffer(&c, "recv", recv);
    rd_f_type(&c, *type, RD_F_NONE, 0);
    if (c.result == RONDO_SUCCESS)
        c.result =
            rondo_alltoall(c.address[0], c.address[1], (size_t)*count, (rondo_type_t)*type, *comm, rd_f_stream(stream));
    rd_f_end(&c);
}

void rondo_f_alltoallv_int64(const CFI_cdesc_t *send, const int64_t *sendcounts, const int64_t *sdispls,
                             const CFI_cdesc_t *recv, const int64_t *recvcounts, const int64_t *rdispls,
                             const int *type, const rondo_comm_t *comm, const rondo_stream_t *stream, int *ierror)
{
    rd_f_call_t c;

    rd_f_begin(&c, "rondo_alltoallv", *comm, ierror);
    rd_f_buffer(&c, "send", send);
    rd_f_buffer(&c, "recv", recv);
    table(&c, sendcounts);
    table(&c, sdispls);
    table(&c, recvcounts);
    table(&c, rdispls);
    rd_f_type(&c, *type, RD_F_NONE, 0);
    if (c.result == RONDO_SUCCESS)
        c.result = rondo_alltoallv(c.address[0], c.table[0], c.table[1], c.address[1], c.table[2], c.table[3],
                                   (rondo_type_t)*type, *comm, rd_f_stream(stream));
    rd_f_end(&c);
}

void rondo_f_gather_int64(const CFI_cdesc_t *send, const CFI_cdesc_t *recv, const int64_t *count, const int *type,
                          const int *root, const rondo_comm_t *comm, const rondo_stream_t *stream, int *ierror)
{
    rd_f_call_t c;

    rd_f_begin(&c, "rondo_gather", *comm, ierror);
    rd_f_buffer(&c, "send", send);
    rd_f_buffer(&c, "recv", recv);
    rd_f_type(&c, *type, 1, *root);
    if (c.result == RONDO_SUCCESS)
        c.result = rondo_gather(c.address[0], c.address[1], (size_t)*count, (rondo_type_t)*type, *root, *comm,
                                rd_f_stream(stream));
    rd_f_end(&c);
}

void rondo_f_scatter_int64(const CFI_cdesc_t *send, const CFI_cdesc_t *recv, const int64_t *count, const int *type,
                           const int *root, const rondo_comm_t *comm, const rondo_stream_t *stream, int *ierror)
{
    rd_f_call_t c;

    rd_f_begin(&c, "rondo_scatter", *comm, ierror);
    rd_f_buffer(&c, "send", send);
    rd_f_buffer(&c, "recv", recv);
    rd_f_type(&c, *type, 0, *root);
    if (c.result == RONDO_SUCCESS)
        c.result = rondo_scatter(c.address[0], c.address[1], (size_t)*count, (rondo_type_t)*type, *root, *comm,
                                 rd_f_stream(stream));
    rd_f_end(&c);
}

void rondo_f_gatherv_int64(const CFI_cdesc_t *send, const int64_t *sendcount, const CFI_cdesc_t *recv,
                           const int64_t *recvcounts, const int64_t *displs, const int *type, const int *root,
                           const rondo_comm_t *comm, const rondo_stream_t *stream, int *ierror)
{
    rd_f_call_t c;

    rd_f_begin(&c, "rondo_gatherv", *comm, ierror);
    rd_f_buffer(&c, "send", send);
    rd_f_buffer(&c, "recv", recv);
    table(&c, recvcounts);
    table(&c, displs);
    rd_f_type(&c, *type, 1, *root);
    if (c.result == RONDO_SUCCESS)
        c.result = rondo_gatherv(c.address[0], (size_t)*sendcount, c.address[1], c.table[0], c.table[1],
                                 (rondo_type_t)*type, *root, *comm, rd_f_stream(stream));
    rd_f_end(&c);
}

void rondo_f_scatterv_int64(const CFI_cdesc_t *send, const int64_t *sendcounts, const int64_t *displs,
                            const CFI_cdesc_t *recv, const int64_t *recvcount, const int *type, const int *root,
                            const rondo_comm_t *comm, const rondo_stream_t *stream, int *ierror)
{
    rd_f_call_t c;

    rd_f_begin(&c, "rondo_scatterv", *comm, ierror);
    rd_f_buffer(&c, "send", send);
    rd_f_buffer(&c, "recv", recv);
    table(&c, sendcounts);
    table(&c, displs);
    rd_f_type(&c, *type, 0, *root);
    if (c.result == RONDO_SUCCESS)
        c.result = rondo_scatterv(c.address[0], c.table[0], c.table[1], c.address[1], (size_t)*recvcount,
                                  (rondo_type_t)*type, *root, *comm, rd_f_stream(stream));
    rd_f_end(&c);
}

void rondo_f_send_int64(const CFI_cdesc_t *buffer, const int64_t *count, const int *type, const int *peer,
                        const rondo_comm_t *comm, const rondo_stream_t *stream, int *ierror)
{
    rd_f_call_t c;

    rd_f_begin(&c, "rondo_send", *comm, ierror);
    rd_f_buffer(&c, "buffer", buffer);
    rd_f_type(&c, *type, RD_F_NONE, 0);
    if (c.result == RONDO_SUCCESS)
        c.result = rondo_send(c.address[0], (size_t)*count, (rondo_type_t)*type, *peer, *comm, rd_f_stream(stream));
    rd_f_end(&c);
}

void rondo_f_recv_int64(const CFI_cdesc_t *buffer, const int64_t *count, const int *type, const int *peer,
                        const rondo_comm_t *comm, const rondo_stream_t *stream, int *ierror)
{
    rd_f_call_t c;

    rd_f_begin(&c, "rondo_recv", *comm, ierror);
    rd_f_buffer(&c, "buffer", buffer);
    rd_f_type(&c, *type, RD_F_NONE, 0);
    if (c.result == RONDO_SUCCESS)
        c.result = rondo_recv(c.address[0], (size_t)*count, (rondo_type_t)*type, *peer, *comm, rd_f_stream(stream));
    rd_f_end(&c);
}

void rondo_f_put_int64(const CFI_cdesc_t *buffer, const int64_t *count, const int *type, const int *peer,
                       const rondo_window_t *window, const int64_t *offset, const int *context, const int *flags,
                       const rondo_comm_t *comm, const rondo_stream_t *stream, int *ierror)
{
    rd_f_call_t c;

    rd_f_begin(&c, "rondo_put", *comm, ierror);
    rd_f_buffer(&c, "buffer", buffer);
    rd_f_type(&c, *type, RD_F_NONE, 0);
    if (c.result == RONDO_SUCCESS)
        c.result = rondo_put(c.address[0], (size_t)*count, (rondo_type_t)*type, *peer, *window, (size_t)*offset,
                             *context, (unsigned)*flags, *comm, rd_f_stream(stream));
    rd_f_end(&c);
}

void rondo_f_put_signal_int64(const CFI_cdesc_t *buffer, const int64_t *count, const int *type, const int *peer,
                              const rondo_window_t *window, const int64_t *offset, const int *number,
                              const int *context, const int *flags, const rondo_comm_t *comm,
                              const rondo_stream_t *stream, int *ierror)
{
    rd_f_call_t c;

    rd_f_begin(&c, "rondo_put_signal", *comm, ierror);
    rd_f_buffer(&c, "buffer", buffer);
    rd_f_type(&c, *type, RD_F_NONE, 0);
    if (c.result == RONDO_SUCCESS)
        c.result = rondo_put_signal(c.address[0], (size_t)*count, (rondo_type_t)*type, *peer, *window, (size_t)*offset,
                                    *number, *context, (unsigned)*flags, *comm, rd_f_stream(stream));
    rd_f_end(&c);
}

void rondo_f_get_int64(const CFI_cdesc_t *buffer, const int64_t *count, const int *type, const int *peer,
                       const rondo_window_t *window, const int64_t *offset, const int *context, const int *flags,
                       const rondo_comm_t *comm, const rondo_stream_t *stream, int *ierror)
{
    rd_f_call_t c;

    rd_f_begin(&c, "rondo_get", *comm, ierror);
    rd_f_buffer(&c, "buffer", buffer);
    rd_f_type(&c, *type, RD_F_NONE, 0);
    if (c.result == RONDO_SUCCESS)
        c.result = rondo_get(c.address[0], (size_t)*count, (rondo_type_t)*type, *peer, *window, (size_t)*offset,
                             *context, (unsigned)*flags, *comm, rd_f_stream(stream));
    rd_f_end(&c);
}

void rondo_f_window_create_int64(const rondo_comm_t *comm, const CFI_cdesc_t *buffer, const int64_t *bytes,
                                 rondo_window_t *window, const int *flags, int *ierror)
{
    rd_f_call_t c;

    rd_f_begin(&c, "rondo_window_create", *comm, ierror);
    rd_f_buffer(&c, "buffer", buffer);
    if (c.result == RONDO_SUCCESS)
        c.result = rondo_window_create(*comm, c.address[0], (size_t)*bytes, window, (unsigned)*flags);
    rd_f_end(&c);
}

void rondo_f_comm_register_int64(const rondo_comm_t *comm, const CFI_cdesc_t *buffer, const int64_t *bytes,
                                 rondo_registration_t *reg, int *ierror)
{
    rd_f_call_t c;

    rd_f_begin(&c, "rondo_comm_register", *comm, ierror);
    rd_f_buffer(&c, "buffer", buffer);
    if (c.result == RONDO_SUCCESS)
        c.result = rondo_comm_register(*comm, c.address[0], (size_t)*bytes, reg);
    rd_f_end(&c);
}

void rondo_f_mem_alloc_int64(void **buffer, const int64_t *bytes, const rondo_comm_t *comm, int *ierror)
{
    rd_f_call_t c;

    rd_f_begin(&c, "rondo_mem_alloc", *comm, ierror);
    c.result = rondo_mem_alloc(buffer, (size_t)*bytes, *comm);
    rd_f_end(&c);
}

#pragma GCC visibility pop
