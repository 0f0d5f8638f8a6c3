!> The calls that take counts, with counts of kind int64. The Makefile generates module rondo_counts_int32 from this
!> file by replacing int64, and module rondo has both under the same names. rondo.h is the manual for all of them.
!>
!> Each is an interface to C (lib/fortran/operations_int64.c), because only C can find out how any buffer lies in
!> memory, and whether it is a type(c_ptr), which stands for the address in it. Nothing is copied on the way. Buffers
!> are `target`, because rondo may keep their addresses until the group ends. Output buffers have no intent, so that
!> c_null_ptr may be passed.
!>
!> Roots, peers, ranks and displacements count from 0. Counts are elements of `type`, not of the array's own type.
!> Arrays of counts have an entry for each rank; if displacements are absent, blocks are packed in rank order. All
!> counts and displacements of a call are of one kind. If the stream is absent, it is the default stream; the host needs
!> none.
module rondo_counts_int64
  use, intrinsic :: iso_c_binding, only: c_int, c_int64_t, c_ptr
  use rondo_types
  implicit none
  private
  public :: rondo_allreduce, rondo_reduce, rondo_broadcast, rondo_allgather, rondo_allgatherv, &
            rondo_reduce_scatter, rondo_reduce_scatterv, rondo_alltoall, rondo_alltoallv, rondo_gather, &
            rondo_scatter, rondo_gatherv, rondo_scatterv, rondo_send, rondo_recv, rondo_comm_register, &
            rondo_mem_alloc, rondo_put, rondo_put_signal, rondo_get, rondo_window_create

  interface rondo_allreduce
    subroutine allreduce(send, recv, count, type, op, comm, stream, ierror) &
      bind(C, name="rondo_f_allreduce_int64")
      import :: c_int, c_ptr, c_int64_t, rondo_comm
      type(*), dimension(..), intent(in), target :: send
      type(*), dimension(..), target :: recv
      integer(c_int64_t), intent(in) :: count
      integer(c_int), intent(in) :: type, op
      type(rondo_comm), intent(in) :: comm
      type(c_ptr), intent(in), optional :: stream
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

  interface rondo_reduce
    subroutine reduce(send, recv, count, type, op, root, comm, stream, ierror) &
      bind(C, name="rondo_f_reduce_int64")
      import :: c_int, c_ptr, c_int64_t, rondo_comm
      type(*), dimension(..), intent(in), target :: send
      type(*), dimension(..), target :: recv
      integer(c_int64_t), intent(in) :: count
      integer(c_int), intent(in) :: type, op, root
      type(rondo_comm), intent(in) :: comm
      type(c_ptr), intent(in), optional :: stream
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

  interface rondo_broadcast
    subroutine broadcast(send, recv, count, type, root, comm, stream, ierror) &
      bind(C, name="rondo_f_broadcast_int64")
      import :: c_int, c_ptr, c_int64_t, rondo_comm
      type(*), dimension(..), intent(in), target :: send
      type(*), dimension(..), target :: recv
      integer(c_int64_t), intent(in) :: count
      integer(c_int), intent(in) :: type, root
      type(rondo_comm), intent(in) :: comm
      type(c_ptr), intent(in), optional :: stream
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

  interface rondo_allgather
    subroutine allgather(send, recv, sendcount, type, comm, stream, ierror) &
      bind(C, name="rondo_f_allgather_int64")
      import :: c_int, c_ptr, c_int64_t, rondo_comm
      type(*), dimension(..), intent(in), target :: send
      type(*), dimension(..), target :: recv
      integer(c_int64_t), intent(in) :: sendcount
      integer(c_int), intent(in) :: type
      type(rondo_comm), intent(in) :: comm
      type(c_ptr), intent(in), optional :: stream
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

  interface rondo_allgatherv
    subroutine allgatherv(send, sendcount, recv, recvcounts, displs, type, comm, stream, ierror) &
      bind(C, name="rondo_f_allgatherv_int64")
      import :: c_int, c_ptr, c_int64_t, rondo_comm
      type(*), dimension(..), intent(in), target :: send
      type(*), dimension(..), target :: recv
      integer(c_int64_t), intent(in) :: sendcount
      integer(c_int64_t), intent(in) :: recvcounts(*)
      integer(c_int64_t), intent(in), optional :: displs(*)
      integer(c_int), intent(in) :: type
      type(rondo_comm), intent(in) :: comm
      type(c_ptr), intent(in), optional :: stream
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

  interface rondo_reduce_scatter
    subroutine reduce_scatter(send, recv, recvcount, type, op, comm, stream, ierror) &
      bind(C, name="rondo_f_reduce_scatter_int64")
      import :: c_int, c_ptr, c_int64_t, rondo_comm
      type(*), dimension(..), intent(in), target :: send
      type(*), dimension(..), target :: recv
      integer(c_int64_t), intent(in) :: recvcount
      integer(c_int), intent(in) :: type, op
      type(rondo_comm), intent(in) :: comm
      type(c_ptr), intent(in), optional :: stream
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

  interface rondo_reduce_scatterv
    subroutine reduce_scatterv(send, recv, recvcounts, type, op, comm, stream, ierror) &
      bind(C, name="rondo_f_reduce_scatterv_int64")
      import :: c_int, c_ptr, c_int64_t, rondo_comm
      type(*), dimension(..), intent(in), target :: send
      type(*), dimension(..), target :: recv
      integer(c_int64_t), intent(in) :: recvcounts(*)
      integer(c_int), intent(in) :: type, op
      type(rondo_comm), intent(in) :: comm
      type(c_ptr), intent(in), optional :: stream
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

  interface rondo_alltoall
    subroutine alltoall(send, recv, count, type, comm, stream, ierror) &
      bind(C, name="rondo_f_alltoall_int64")
      import :: c_int, c_ptr, c_int64_t, rondo_comm
      type(*), dimension(..), intent(in), target :: send
      type(*), dimension(..), target :: recv
      integer(c_int64_t), intent(in) :: count
      integer(c_int), intent(in) :: type
      type(rondo_comm), intent(in) :: comm
      type(c_ptr), intent(in), optional :: stream
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

  interface rondo_alltoallv
    subroutine alltoallv(send, sendcounts, sdispls, recv, recvcounts, rdispls, type, comm, stream, ierror) &
      bind(C, name="rondo_f_alltoallv_int64")
      import :: c_int, c_ptr, c_int64_t, rondo_comm
      type(*), dimension(..), intent(in), target :: send
      type(*), dimension(..), target :: recv
      integer(c_int64_t), intent(in) :: sendcounts(*), recvcounts(*)
      integer(c_int64_t), intent(in), optional :: sdispls(*), rdispls(*)
      integer(c_int), intent(in) :: type
      type(rondo_comm), intent(in) :: comm
      type(c_ptr), intent(in), optional :: stream
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

  interface rondo_gather
    subroutine gather(send, recv, count, type, root, comm, stream, ierror) &
      bind(C, name="rondo_f_gather_int64")
      import :: c_int, c_ptr, c_int64_t, rondo_comm
      type(*), dimension(..), intent(in), target :: send
      type(*), dimension(..), target :: recv
      integer(c_int64_t), intent(in) :: count
      integer(c_int), intent(in) :: type, root
      type(rondo_comm), intent(in) :: comm
      type(c_ptr), intent(in), optional :: stream
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

  interface rondo_scatter
    subroutine scatter(send, recv, count, type, root, comm, stream, ierror) &
      bind(C, name="rondo_f_scatter_int64")
      import :: c_int, c_ptr, c_int64_t, rondo_comm
      type(*), dimension(..), intent(in), target :: send
      type(*), dimension(..), target :: recv
      integer(c_int64_t), intent(in) :: count
      integer(c_int), intent(in) :: type, root
      type(rondo_comm), intent(in) :: comm
      type(c_ptr), intent(in), optional :: stream
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

  interface rondo_gatherv
    subroutine gatherv(send, sendcount, recv, recvcounts, displs, type, root, comm, stream, ierror) &
      bind(C, name="rondo_f_gatherv_int64")
      import :: c_int, c_ptr, c_int64_t, rondo_comm
      type(*), dimension(..), intent(in), target :: send
      type(*), dimension(..), target :: recv
      integer(c_int64_t), intent(in) :: sendcount
      integer(c_int64_t), intent(in), optional :: recvcounts(*), displs(*)
      integer(c_int), intent(in) :: type, root
      type(rondo_comm), intent(in) :: comm
      type(c_ptr), intent(in), optional :: stream
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

  interface rondo_scatterv
    subroutine scatterv(send, sendcounts, displs, recv, recvcount, type, root, comm, stream, ierror) &
      bind(C, name="rondo_f_scatterv_int64")
      import :: c_int, c_ptr, c_int64_t, rondo_comm
      type(*), dimension(..), intent(in), target :: send
      type(*), dimension(..), target :: recv
      integer(c_int64_t), intent(in) :: recvcount
      integer(c_int64_t), intent(in), optional :: sendcounts(*), displs(*)
      integer(c_int), intent(in) :: type, root
      type(rondo_comm), intent(in) :: comm
      type(c_ptr), intent(in), optional :: stream
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

  interface rondo_send
    subroutine send(buffer, count, type, peer, comm, stream, ierror) &
      bind(C, name="rondo_f_send_int64")
      import :: c_int, c_ptr, c_int64_t, rondo_comm
      type(*), dimension(..), intent(in), target :: buffer
      integer(c_int64_t), intent(in) :: count
      integer(c_int), intent(in) :: type, peer
      type(rondo_comm), intent(in) :: comm
      type(c_ptr), intent(in), optional :: stream
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

  interface rondo_recv
    subroutine recv(buffer, count, type, peer, comm, stream, ierror) &
      bind(C, name="rondo_f_recv_int64")
      import :: c_int, c_ptr, c_int64_t, rondo_comm
      type(*), dimension(..), target :: buffer
      integer(c_int64_t), intent(in) :: count
      integer(c_int), intent(in) :: type, peer
      type(rondo_comm), intent(in) :: comm
      type(c_ptr), intent(in), optional :: stream
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface
  interface rondo_put
    subroutine put(buffer, count, type, peer, window, offset, context, flags, comm, stream, ierror) &
      bind(C, name="rondo_f_put_int64")
      import :: c_int, c_ptr, c_int64_t, rondo_comm, rondo_window
      type(*), dimension(..), intent(in), target :: buffer
      integer(c_int64_t), intent(in) :: count, offset
      integer(c_int), intent(in) :: type, peer, context, flags
      type(rondo_window), intent(in) :: window
      type(rondo_comm), intent(in) :: comm
      type(c_ptr), intent(in), optional :: stream
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

  interface rondo_put_signal
    subroutine put_signal(buffer, count, type, peer, window, offset, signal, context, flags, comm, stream, ierror) &
      bind(C, name="rondo_f_put_signal_int64")
      import :: c_int, c_ptr, c_int64_t, rondo_comm, rondo_window
      type(*), dimension(..), intent(in), target :: buffer
      integer(c_int64_t), intent(in) :: count, offset
      integer(c_int), intent(in) :: type, peer, signal, context, flags
      type(rondo_window), intent(in) :: window
      type(rondo_comm), intent(in) :: comm
      type(c_ptr), intent(in), optional :: stream
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

  interface rondo_get
    subroutine get(buffer, count, type, peer, window, offset, context, flags, comm, stream, ierror) &
      bind(C, name="rondo_f_get_int64")
      import :: c_int, c_ptr, c_int64_t, rondo_comm, rondo_window
      type(*), dimension(..), target :: buffer
      integer(c_int64_t), intent(in) :: count, offset
      integer(c_int), intent(in) :: type, peer, context, flags
      type(rondo_window), intent(in) :: window
      type(rondo_comm), intent(in) :: comm
      type(c_ptr), intent(in), optional :: stream
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

  !> Opens `bytes` bytes of the buffer, or of memory that rondo allocates if that is c_null_ptr; it is collective.
  interface rondo_window_create
    subroutine window_create(comm, buffer, bytes, window, flags, ierror) bind(C, name="rondo_f_window_create_int64")
      import :: c_int, c_int64_t, rondo_comm, rondo_window
      type(rondo_comm), intent(in) :: comm
      type(*), dimension(..), target :: buffer
      integer(c_int64_t), intent(in) :: bytes
      type(rondo_window), intent(out) :: window
      integer(c_int), intent(in) :: flags
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

  !> Registers `bytes` bytes of the buffer; it is collective.
  interface rondo_comm_register
    subroutine comm_register(comm, buffer, bytes, reg, ierror) bind(C, name="rondo_f_comm_register_int64")
      import :: c_int, c_int64_t, rondo_comm, rondo_registration
      type(rondo_comm), intent(in) :: comm
      type(*), dimension(..), target :: buffer
      integer(c_int64_t), intent(in) :: bytes
      type(rondo_registration), intent(out) :: reg
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

  !> The memory is returned as an address, of which c_f_pointer makes an array.
  interface rondo_mem_alloc
    subroutine mem_alloc(buffer, bytes, comm, ierror) bind(C, name="rondo_f_mem_alloc_int64")
      import :: c_int, c_ptr, c_int64_t, rondo_comm
      type(c_ptr), intent(out) :: buffer
      integer(c_int64_t), intent(in) :: bytes
      type(rondo_comm), intent(in) :: comm
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface
end module
