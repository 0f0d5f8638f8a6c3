! All served calls from Fortran, by mpif.h, `use mpi` or `use mpi_f08` (-DWAY=1, 2, 3): results, MPI_IN_PLACE,
! MPI_BOTTOM, operators of the program, nonblocking and persistent calls (-DEXTENDED: they are named MPIX_), an absent ierror, array sections, a logical and a complex reduction. Prints "good" on rank 0.
program fortran
#if WAY == 2
  use mpi
#elif WAY == 3
  use mpi_f08
#ifdef EXTENDED
  use mpi_f08_ext
#endif
#endif
  implicit none
#if WAY == 1
  include 'mpif.h'
#endif
#if WAY == 3
#define COMM type(MPI_Comm)
#define DATATYPE type(MPI_Datatype)
#define OP type(MPI_Op)
#define REQUEST type(MPI_Request)
#else
#define COMM integer
#define DATATYPE integer
#define OP integer
#define REQUEST integer
#endif
#ifdef EXTENDED
#define ALLREDUCE_INIT MPIX_Allreduce_init
#define BCAST_INIT MPIX_Bcast_init
#define BARRIER_INIT MPIX_Barrier_init
#else
#define ALLREDUCE_INIT MPI_Allreduce_init
#define BCAST_INIT MPI_Bcast_init
#define BARRIER_INIT MPI_Barrier_init
#endif
  integer :: rank, n, ierror, failures, i, turn, total
  integer, allocatable :: in(:), out(:), counts(:), displs(:), grid(:, :)
  double precision :: x, y
  complex :: z, zsum
  logical :: all_true
  COMM :: dup
  REQUEST :: request, requests(3)
  integer, asynchronous :: later(3)

  failures = 0
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, n, ierror)
  allocate (in(2 * n), out(2 * n), counts(n), displs(n), grid(4, 4))
  total = n * (n - 1) / 2
  counts = 2
  displs = [(2 * i, i=0, n - 1)]
  call MPI_Comm_dup(MPI_COMM_WORLD, dup, ierror)
  do turn = 1, 12
    x = rank
    call MPI_Allreduce(x, y, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
    call expect(ierror == MPI_SUCCESS .and. y == total, 'allreduce')
    call MPI_Allreduce(MPI_IN_PLACE, x, 1, MPI_DOUBLE_PRECISION, MPI_SUM, dup, ierror)
    call expect(x == total, 'allreduce in place')
    z = cmplx(rank, 1)
    call MPI_Allreduce(z, zsum, 1, MPI_COMPLEX, MPI_SUM, MPI_COMM_WORLD, ierror)
    call expect(zsum == cmplx(total, n), 'complex')
    call MPI_Allreduce(rank < n, all_true, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierror)
    call expect(all_true, 'logical true')
    call MPI_Allreduce(rank < n - 1, all_true, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierror)
    call expect(.not. all_true, 'logical false')
    i = rank
    call MPI_Bcast(i, 1, MPI_INTEGER, n - 1, MPI_COMM_WORLD, ierror)
    call expect(i == n - 1, 'bcast')
    i = -1
    call MPI_Reduce(rank, i, 1, MPI_INTEGER, MPI_MAX, 0, MPI_COMM_WORLD, ierror)
    call expect(merge(n - 1, -1, rank == 0) == i, 'reduce')
    i = rank
    if (rank == 0) then
      call MPI_Reduce(MPI_IN_PLACE, i, 1, MPI_INTEGER, MPI_MAX, 0, MPI_COMM_WORLD, ierror)
    else
      call MPI_Reduce(i, i, 1, MPI_INTEGER, MPI_MAX, 0, MPI_COMM_WORLD, ierror)
    end if
    call expect(i == merge(n - 1, rank, rank == 0), 'reduce in place')
    in = rank
    call MPI_Allgather(in, 2, MPI_INTEGER, out, 2, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    call expect(blocks(), 'allgather')
    out = -1
    out(2 * rank + 1:2 * rank + 2) = rank
    call MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INTEGER, out, counts, displs, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    call expect(blocks(), 'allgatherv in place')
    call MPI_Gather(in, 2, MPI_INTEGER, out, 2, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
    call expect(blocks(), 'gather')
    call MPI_Gatherv(in, 2, MPI_INTEGER, out, counts, displs, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
    call expect(blocks(), 'gatherv')
    call MPI_Scatter(out, 2, MPI_INTEGER, in, 2, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
    call expect(all(in == rank), 'scatter')
    call MPI_Scatterv(out, counts, displs, MPI_INTEGER, in, 2, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
    call expect(all(in == rank), 'scatterv')
    call MPI_Alltoall(in, 2, MPI_INTEGER, out, 2, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    call expect(blocks(), 'alltoall')
    call MPI_Alltoallv(in, counts, displs, MPI_INTEGER, out, counts, displs, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    call expect(blocks(), 'alltoallv')
    in = 1
    call MPI_Reduce_scatter(in, out, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call expect(all(out(1:2) == n), 'reduce_scatter')
    call MPI_Reduce_scatter_block(in, out, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call expect(all(out(1:2) == n), 'reduce_scatter_block')
    call MPI_Scan(1, i, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call expect(i == rank + 1, 'scan')
    i = 0
    call MPI_Exscan(1, i, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call expect(i == rank, 'exscan')
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    call expect(ierror == MPI_SUCCESS, 'barrier')
    call by_bottom()
    call nonblocking()
    call operator()
    if (turn == 12) call persistent() ! by then rondo serves the duplicate
#if WAY == 3
    call MPI_Allreduce(rank, i, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call expect(i == total, 'without ierror')
    call MPI_Barrier(MPI_COMM_WORLD)
#ifdef SECTIONS
    grid = rank
    call MPI_Bcast(grid(2, :), 4, MPI_INTEGER, 1, MPI_COMM_WORLD)
    call expect(all(grid(2, :) == 1) .and. all(grid(1, :) == rank), 'a section')
#endif
#endif
  end do
  call MPI_Comm_free(dup, ierror)
  call MPI_Allreduce(MPI_IN_PLACE, failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  if (rank == 0 .and. failures == 0) print '(a)', 'good'
  call MPI_Finalize(ierror)
  if (failures /= 0) stop 1

contains

  logical function blocks()
    integer :: r
    blocks = .true.
    if (rank /= 0) return ! what is gathered is looked at on the root, which has it always
    do r = 0, n - 1
      blocks = blocks .and. all(out(2 * r + 1:2 * r + 2) == r)
    end do
  end function

  subroutine by_bottom()
    integer, save, target :: a
    integer(kind=MPI_ADDRESS_KIND) :: at(1)
    DATATYPE :: absolute
    integer :: error
    call MPI_Get_address(a, at(1), error)
    call MPI_Type_create_hindexed(1, [1], at, MPI_INTEGER, absolute, error)
    call MPI_Type_commit(absolute, error)
    a = rank
    call MPI_Bcast(MPI_BOTTOM, 1, absolute, n - 1, MPI_COMM_WORLD, error)
    call expect(a == n - 1, 'MPI_BOTTOM')
    call MPI_Type_free(absolute, error)
  end subroutine

  subroutine nonblocking()
    integer :: index, error
    logical :: flag
    call MPI_Iallreduce(rank, later(1), 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request, error)
    call MPI_Wait(request, MPI_STATUS_IGNORE, error)
    call expect(later(1) == total .and. request == MPI_REQUEST_NULL, 'iallreduce')
    call MPI_Ibarrier(MPI_COMM_WORLD, request, error)
    flag = .false.
    do while (.not. flag)
      call MPI_Test(request, flag, MPI_STATUS_IGNORE, error)
    end do
    later = rank
    call MPI_Iallreduce(MPI_IN_PLACE, later, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, requests(1), error)
    call MPI_Ibcast(later(2), 1, MPI_INTEGER, n - 1, MPI_COMM_WORLD, requests(2), error)
    call MPI_Iscan(1, later(3), 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(3), error)
    call MPI_Waitany(3, requests, index, MPI_STATUS_IGNORE, error)
    call expect(index >= 0 .and. index <= 3, 'waitany') ! MPICH 4.0's `use mpi_f08` counts from 0
    call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE, error)
    call expect(later(1) == n - 1 .and. later(2) == n - 1 .and. later(3) == rank + 1, 'three at a time')
    in = rank
    out = -1
    call MPI_Ialltoallv(in, counts, displs, MPI_INTEGER, out, counts, displs, MPI_INTEGER, MPI_COMM_WORLD, &
                        request, error)
    call MPI_Wait(request, MPI_STATUS_IGNORE, error)
    call expect(blocks(), 'ialltoallv')
    call MPI_Igatherv(in, 2, MPI_INTEGER, out, counts, displs, MPI_INTEGER, 0, MPI_COMM_WORLD, request, error)
    call MPI_Wait(request, MPI_STATUS_IGNORE, error)
    call expect(blocks(), 'igatherv')
  end subroutine

  ! An operator of this program's, and its type, both of which are freed before the wait.
  subroutine operator()
    OP :: least
    DATATYPE :: pair
    integer :: error
    call MPI_Op_create(smallest, .true., least, error)
    call MPI_Type_contiguous(2, MPI_INTEGER, pair, error)
    call MPI_Type_commit(pair, error)
    later = [rank + 1, -rank, 0]
    call MPI_Iallreduce(MPI_IN_PLACE, later, 1, pair, least, MPI_COMM_WORLD, request, error)
    call MPI_Op_free(least, error)
    call expect(error == MPI_SUCCESS .and. least == MPI_OP_NULL, 'op_free')
    call MPI_Type_free(pair, error)
    call expect(error == MPI_SUCCESS .and. pair == MPI_DATATYPE_NULL, 'type_free')
    call MPI_Wait(request, MPI_STATUS_IGNORE, error)
    call expect(all(later == [1, 1 - n, 0]), 'an operator of the program')
  end subroutine

#if WAY == 3
  subroutine smallest(in, inout, length, type)
    use iso_c_binding, only: c_ptr, c_f_pointer
    type(c_ptr), value :: in, inout
    integer :: length
    type(MPI_Datatype) :: type
    integer, pointer :: from(:), to(:)
    call c_f_pointer(in, from, [2 * length])
    call c_f_pointer(inout, to, [2 * length])
    to = min(from, to)
  end subroutine
#else
  subroutine smallest(in, inout, length, type)
    integer :: length, type
    integer :: in(2 * length), inout(2 * length)
    inout = min(in, inout)
  end subroutine
#endif

  subroutine persistent()
    integer :: round, error
    call ALLREDUCE_INIT(MPI_IN_PLACE, later, 1, MPI_INTEGER, MPI_SUM, dup, MPI_INFO_NULL, requests(1), error)
    call BCAST_INIT(later(2), 1, MPI_INTEGER, n - 1, dup, MPI_INFO_NULL, requests(2), error)
    call BARRIER_INIT(dup, MPI_INFO_NULL, requests(3), error)
    do round = 1, 5
      later = rank + round
      if (mod(round, 2) == 0) then
        call MPI_Startall(3, requests, error)
      else
        call MPI_Start(requests(2), error)
        call MPI_Start(requests(3), error)
        call MPI_Start(requests(1), error)
      end if
      call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
      call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE, error)
      call expect(later(1) == total + n * round .and. later(2) == n - 1 + round, 'persistent')
    end do
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, error)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, error)
    call MPI_Startall(-1, requests, error)
    call expect(error /= MPI_SUCCESS, '-1 persistent requests are started')
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL, error)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL, error)
    do round = 1, 3
      call expect(requests(round) /= MPI_REQUEST_NULL, 'a persistent request is gone')
      call MPI_Request_free(requests(round), error)
      call expect(requests(round) == MPI_REQUEST_NULL, 'a persistent request stays')
    end do
  end subroutine

  subroutine expect(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    if (condition) return
    failures = failures + 1
    print '(a,i0,2a)', 'rank ', rank, ': ', what
  end subroutine
end program
