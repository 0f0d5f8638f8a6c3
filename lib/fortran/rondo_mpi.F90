!> Module rondo, and the creation of a communicator from one of MPI's. A module works only with the MPI and the compiler
!> that it was compiled with, so this file is installed as source: compile it with your MPI's own wrapper, before your
!> program. It uses module mpi for the calls, and mpi_f08 for the type only. If there is no mpi_f08, define
!> RONDO_NO_MPI_F08: then it takes integer communicators only. What it gives to MPI is of that MPI's integers, whatever
!> default integers are here (-i8, -fdefault-integer-8).
module rondo_mpi
  use, intrinsic :: iso_c_binding, only: c_int
  use mpi, only: MPI_BYTE
#ifndef RONDO_NO_MPI_F08
  use mpi_f08, only: mpi_handle => MPI_Comm
#endif
  use rondo
  implicit none
  private :: c_int, create_integer, k, MPI_BYTE
#ifndef RONDO_NO_MPI_F08
  private :: mpi_handle, create_f08
#endif

  integer, parameter :: k = kind(MPI_BYTE)

  !> call rondo_comm_create_mpi(comm, mpi_comm [, config, ierror]): collective over mpi_comm, which is a type(MPI_Comm)
  !> or an integer. It asks MPI for rank and size, and broadcasts 128 bytes by MPI.
  interface rondo_comm_create_mpi
    procedure create_integer
#ifndef RONDO_NO_MPI_F08
    procedure create_f08
#endif
  end interface

contains

  subroutine create_integer(comm, mpi_comm, config, ierror)
    type(rondo_comm), intent(out) :: comm
    integer(k), intent(in) :: mpi_comm
    type(rondo_config), intent(in), optional :: config
    integer(c_int), intent(out), optional :: ierror
    type(rondo_unique_id) :: id
    integer(k) :: rank, nranks, failed
    integer(c_int) :: ignored
    external :: MPI_Bcast, MPI_Comm_rank, MPI_Comm_size ! the module's names may clash with mpi_comm

    ! By default MPI ends the program itself at an error; if it does not, rondo_comm_create refuses rank -1.
    rank = -1
    nranks = -1
    call MPI_Comm_rank(mpi_comm, rank, failed)
    call MPI_Comm_size(mpi_comm, nranks, failed)
    ! On failure the id carries the error to all ranks.
    if (rank == 0) call rondo_unique_id_create(id, ignored)
    call MPI_Bcast(id%bytes, size(id%bytes, kind=k), MPI_BYTE, 0_k, mpi_comm, failed)
    call rondo_comm_create(comm, int(nranks, c_int), id, int(rank, c_int), config, ierror)
  end subroutine

#ifndef RONDO_NO_MPI_F08
  subroutine create_f08(comm, mpi_comm, config, ierror)
    type(rondo_comm), intent(out) :: comm
    type(mpi_handle), intent(in) :: mpi_comm
    type(rondo_config), intent(in), optional :: config
    integer(c_int), intent(out), optional :: ierror

    call create_integer(comm, mpi_comm%MPI_VAL, config, ierror)
  end subroutine
#endif
end module
