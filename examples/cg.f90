! Conjugate gradients for the Laplacian of a square, its columns dealt out to the ranks in blocks. The only collective
! is the allreduce of the dot products. Its result is bitwise the same on every rank, so all ranks leave the loop in the
! same iteration without asking each other. Without ierror an error stops the program with its message.
!
!     mpif90 $(pkg-config --variable=mpi_source rondo-fortran) cg.f90 $(pkg-config --cflags --libs rondo-fortran) -o cg
!     mpirun -n 4 ./cg
program cg
  use, intrinsic :: iso_fortran_env, only: real64
  use mpi_f08
  use rondo_mpi
  implicit none
  integer, parameter :: n = 96 ! the square has n x n inner points
  type(rondo_comm) :: comm
  integer :: rank, nranks, first, cols, iterations, i, j
  real(real64), allocatable :: wanted(:, :), p(:, :), x(:, :), r(:, :), ap(:, :)
  real(real64) :: rr, before, alpha, enough, worst

  call MPI_Init()
  call rondo_comm_create_mpi(comm, MPI_COMM_WORLD)
  call rondo_comm_rank(comm, rank)
  call rondo_comm_size(comm, nranks)
  first = n*rank/nranks
  cols = n*(rank + 1)/nranks - first ! this rank's columns

  ! Columns 0 and cols + 1 are for the neighbours' columns; at the border they stay zero.
  allocate (wanted(n, 0:cols + 1), p(n, 0:cols + 1), x(n, cols), r(n, cols), ap(n, cols))
  wanted = 0
  do j = 1, cols
    wanted(:, j) = [(sin(0.1_real64*(first + j)) + cos(0.3_real64*i), i=1, n)]
  end do
  call laplace(wanted, r) ! b, which is r as long as x is 0
  x = 0
  p = 0
  p(:, 1:cols) = r

  rr = dot(r, r)
  enough = 1e-24_real64*rr
  iterations = 0
  do while (rr > enough .and. iterations < 1000)
    call laplace(p, ap)
    alpha = rr/dot(p(:, 1:cols), ap)
    x = x + alpha*p(:, 1:cols)
    r = r - alpha*ap
    before = rr
    rr = dot(r, r)
    p(:, 1:cols) = r + rr/before*p(:, 1:cols)
    iterations = iterations + 1
  end do

  call rondo_allreduce(maxval(abs(x - wanted(:, 1:cols))), worst, 1, RONDO_FLOAT64, RONDO_MAX, comm)
  if (rank == 0) print '(a, i0, a, es7.1)', 'cg: ', iterations, ' iterations, largest error ', worst
  call rondo_comm_destroy(comm)
  call MPI_Finalize()
  if (.not. worst < 1e-8_real64) error stop 1

contains

  function dot(a, b) result(total)
    real(real64), intent(in) :: a(:, :), b(:, :)
    real(real64) :: total

    call rondo_allreduce(sum(a*b), total, 1, RONDO_FLOAT64, RONDO_SUM, comm)
  end function

  ! y = A x
  subroutine laplace(x, y)
    real(real64), intent(inout), asynchronous :: x(n, 0:cols + 1) ! rondo reads and writes it until the group ends
    real(real64), intent(out) :: y(n, cols)

    call rondo_group_start()
    if (rank > 0) then
      call rondo_send(x(:, 1), n, RONDO_FLOAT64, rank - 1, comm)
      call rondo_recv(x(:, 0), n, RONDO_FLOAT64, rank - 1, comm)
    end if
    if (rank < nranks - 1) then
      call rondo_send(x(:, cols), n, RONDO_FLOAT64, rank + 1, comm)
      call rondo_recv(x(:, cols + 1), n, RONDO_FLOAT64, rank + 1, comm)
    end if
    call rondo_group_end()
    y = 4*x(:, 1:cols) - x(:, 0:cols - 1) - x(:, 2:cols + 1)
    y(2:, :) = y(2:, :) - x(1:n - 1, 1:cols)
    y(1:n - 1, :) = y(1:n - 1, :) - x(2:, 1:cols)
  end subroutine
end program
