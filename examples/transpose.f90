! A Fourier transform in two dimensions as parallel codes do it: transform the columns that one has, transpose by
! alltoallv, transform what are columns now. The columns need not divide evenly. A plane wave becomes one peak, in the
! place that its wave numbers say.
!
!     mpif90 $(pkg-config --variable=mpi_source rondo-fortran) transpose.f90 \
!         $(pkg-config --cflags --libs rondo-fortran) -o transpose
!     mpirun -n 4 ./transpose
program transpose_example
  use, intrinsic :: iso_fortran_env, only: real64
  use mpi_f08
  use rondo_mpi
  implicit none
  integer, parameter :: rows = 50, cols = 42, wave_row = 7, wave_col = 19 ! the wave's numbers
  real(real64), parameter :: tau = 6.283185307179586_real64
  type(rondo_comm) :: comm
  integer :: rank, nranks, i, j
  complex(real64), allocatable :: a(:, :), b(:, :)
  real(real64) :: worst

  call MPI_Init()
  call rondo_comm_create_mpi(comm, MPI_COMM_WORLD)
  call rondo_comm_rank(comm, rank)
  call rondo_comm_size(comm, nranks)
  allocate (a(rows, first(cols, rank):last(cols, rank)), b(cols, first(rows, rank):last(rows, rank)))
  do j = lbound(a, 2), ubound(a, 2)
    a(:, j) = [(wave(real(wave_row*(i - 1), real64)/rows + real(wave_col*(j - 1), real64)/cols), i=1, rows)]
    call transform(a(:, j))
  end do
  call turn(a, rows, cols, b)
  do j = lbound(b, 2), ubound(b, 2)
    call transform(b(:, j))
    if (j == wave_row + 1) b(wave_col + 1, j) = b(wave_col + 1, j) - rows*cols
  end do
  call rondo_allreduce(maxval(abs(b)), worst, 1, RONDO_FLOAT64, RONDO_MAX, comm)
  if (rank == 0) print '(a, i0, a, i0, a, es7.1)', 'transpose: ', rows, ' x ', cols, ', largest error ', worst
  call rondo_comm_destroy(comm)
  call MPI_Finalize()
  if (.not. worst < 1e-8_real64) error stop 1

contains

  ! Of rank r's columns, if there are n in all.
  function first(n, r)
    integer, intent(in) :: n, r
    integer :: first

    first = n*r/nranks + 1
  end function

  function last(n, r)
    integer, intent(in) :: n, r
    integer :: last

    last = n*(r + 1)/nranks
  end function

  function wave(turns)
    real(real64), intent(in) :: turns
    complex(real64) :: wave

    wave = exp(cmplx(0, tau*turns, real64))
  end function

  ! In place and slowly: this is not about the transform.
  subroutine transform(x)
    complex(real64), intent(inout) :: x(:)
    complex(real64) :: y(size(x))
    integer :: k, i

    do k = 1, size(x)
      y(k) = sum([(x(i)*wave(-real(modulo((k - 1)*(i - 1), size(x)), real64)/size(x)), i=1, size(x))])
    end do
    x = y
  end subroutine

  ! From this rank's columns of an m x n matrix to its columns of the transposed one. For each rank a block, in which
  ! the other's columns come one after the other; the blocks that arrive are put one below the other.
  subroutine turn(a, m, n, b)
    integer, intent(in) :: m, n
    complex(real64), intent(in) :: a(:, :)
    complex(real64), intent(out) :: b(:, :)
    complex(real64) :: send(size(a)), recv(size(b))
    integer :: counts(0:nranks - 1), back(0:nranks - 1), r, at

    at = 0
    do r = 0, nranks - 1
      counts(r) = size(a, 2)*(last(m, r) - first(m, r) + 1)
      back(r) = size(b, 2)*(last(n, r) - first(n, r) + 1)
      send(at + 1:at + counts(r)) = reshape(transpose(a(first(m, r):last(m, r), :)), [counts(r)])
      at = at + counts(r)
    end do
    ! Without displacements the blocks are packed in rank order.
    call rondo_alltoallv(send, counts, recv=recv, recvcounts=back, type=RONDO_COMPLEX128, comm=comm)
    at = 0
    do r = 0, nranks - 1
      b(first(n, r):last(n, r), :) = reshape(recv(at + 1:at + back(r)), [last(n, r) - first(n, r) + 1, size(b, 2)])
      at = at + back(r)
    end do
  end subroutine
end program
