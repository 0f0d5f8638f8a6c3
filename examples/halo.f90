! Halo exchange of a periodic box in three dimensions: each rank has a block with a layer around it, and gets the six
! faces of that layer from its neighbours by sends and receives in one group, in any order and without tags. A rank that
! is its own neighbour sends to itself. Checked with a field that every point can tell from where it lies.
!
!     mpif90 $(pkg-config --variable=mpi_source rondo-fortran) halo.f90 \
!         $(pkg-config --cflags --libs rondo-fortran) -o halo
!     mpirun -n 4 ./halo
program halo
  use, intrinsic :: iso_fortran_env, only: real64
  use mpi_f08
  use rondo_mpi
  implicit none
  integer, parameter :: n = 12 ! inner points of a block in each direction
  type(rondo_comm) :: comm
  integer :: rank, nranks, grid(3), me(3), wrong, all_wrong ! the blocks in each direction, and which is mine
  real(real64) :: u(0:n + 1, 0:n + 1, 0:n + 1)

  call MPI_Init()
  call rondo_comm_create_mpi(comm, MPI_COMM_WORLD)
  call rondo_comm_rank(comm, rank)
  call rondo_comm_size(comm, nranks)
  grid = 0
  call MPI_Dims_create(nranks, 3, grid)
  me = [modulo(rank, grid(1)), modulo(rank/grid(1), grid(2)), rank/(grid(1)*grid(2))]

  u = -1
  call set_field()
  call exchange()
  wrong = wrong_points()
  call rondo_allreduce(wrong, all_wrong, 1, RONDO_INT32, RONDO_SUM, comm)
  if (rank == 0) print '(a, i0, 2(" x ", i0), a, i0, a)', 'halo: ', grid, ' blocks, ', all_wrong, ' points wrong'
  call rondo_comm_destroy(comm)
  call MPI_Finalize()
  if (all_wrong /= 0) error stop 1

contains

  ! The faces are sections with gaps, in two directions of three: rondo does not copy those, so they travel packed.
  subroutine exchange()
    real(real64), dimension(n, n, 2, 3), asynchronous :: out, in ! rondo reads and writes them until the group ends
    integer :: d, below, above

    out(:, :, 1, 1) = u(1, 1:n, 1:n)
    out(:, :, 2, 1) = u(n, 1:n, 1:n)
    out(:, :, 1, 2) = u(1:n, 1, 1:n)
    out(:, :, 2, 2) = u(1:n, n, 1:n)
    out(:, :, 1, 3) = u(1:n, 1:n, 1)
    out(:, :, 2, 3) = u(1:n, 1:n, n)
    call rondo_group_start()
    do d = 1, 3
      below = neighbour(d, -1)
      above = neighbour(d, 1)
      call rondo_send(out(:, :, 1, d), n*n, RONDO_FLOAT64, below, comm)
      call rondo_send(out(:, :, 2, d), n*n, RONDO_FLOAT64, above, comm)
      ! Messages of a pair match in order: where both neighbours are one rank, its lower face comes first.
      call rondo_recv(in(:, :, 2, d), n*n, RONDO_FLOAT64, above, comm)
      call rondo_recv(in(:, :, 1, d), n*n, RONDO_FLOAT64, below, comm)
    end do
    call rondo_group_end()
    u(0, 1:n, 1:n) = in(:, :, 1, 1)
    u(n + 1, 1:n, 1:n) = in(:, :, 2, 1)
    u(1:n, 0, 1:n) = in(:, :, 1, 2)
    u(1:n, n + 1, 1:n) = in(:, :, 2, 2)
    u(1:n, 1:n, 0) = in(:, :, 1, 3)
    u(1:n, 1:n, n + 1) = in(:, :, 2, 3)
  end subroutine

  function neighbour(d, step) result(r)
    integer, intent(in) :: d, step
    integer :: r, at(3)

    at = me
    at(d) = modulo(at(d) + step, grid(d))
    r = (at(3)*grid(2) + at(2))*grid(1) + at(1)
  end function

  ! What lies at i, j, k of this block's array, the layer included: the point's number in the whole box.
  function field(i, j, k) result(number)
    integer, intent(in) :: i, j, k
    real(real64) :: number
    integer :: at(3)

    at = modulo(me*n + [i, j, k] - 1, grid*n)
    number = (real(at(3), real64)*grid(2)*n + at(2))*grid(1)*n + at(1)
  end function

  subroutine set_field()
    integer :: i, j, k

    do k = 1, n
      do j = 1, n
        do i = 1, n
          u(i, j, k) = field(i, j, k)
        end do
      end do
    end do
  end subroutine

  ! Of the block and of its layer's faces; the layer's edges come from nobody.
  function wrong_points() result(wrong)
    integer :: wrong, i, j, k

    wrong = 0
    do k = 0, n + 1
      do j = 0, n + 1
        do i = 0, n + 1
          if (count(modulo([i, j, k], n + 1) == 0) > 1) cycle
          if (u(i, j, k) /= field(i, j, k)) wrong = wrong + 1
        end do
      end do
    end do
  end function
end program
