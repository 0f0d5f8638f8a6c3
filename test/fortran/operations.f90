!> Every operation of module rondo with data, by counts of both kinds, on a communicator made from a type(MPI_Comm) and
!> on one made from an integer. Then what is Fortran's own: types, address, sections, streams, operators, requests.
program operations
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int32, int64, int8, real32, real64
  use mpi_f08, only: MPI_Init, MPI_Finalize, MPI_Comm, MPI_COMM_WORLD
  use rondo_mpi
  implicit none
  integer, parameter :: many = 1000
  type(rondo_comm) :: comm, by_integer
  type(rondo_config) :: config
  integer :: rank, n, failures = 0

  call rondo_setting_set('RONDO_DEBUG', 'none') ! many errors are wanted here
  call MPI_Init()
  config%name = 'world'
  config%device = RONDO_DEVICE_HOST
  call rondo_comm_create_mpi(comm, MPI_COMM_WORLD, config)
  call rondo_comm_create_mpi(by_integer, MPI_COMM_WORLD%MPI_VAL)
  call rondo_comm_rank(comm, rank)
  call rondo_comm_size(comm, n)
  call by_int32(comm)
  call by_int64(by_integer)
  call check_types()
  call check_sizes()
  call check_buffers()
  call check_groups()
  call check_others()
  call check_one_sided()
  call rondo_comm_destroy(by_integer)
  call rondo_comm_destroy(comm)
  call expect(.not. c_associated(comm%handle), 'destroy')
  call MPI_Finalize()
  if (failures > 0) error stop 1

contains

  pure function value(r, i)
    integer, intent(in) :: r, i
    real(real64) :: value

    value = 2000 * r + i
  end function

  subroutine expect(right, what)
    logical, intent(in) :: right
    character(len=*), intent(in) :: what

    if (right) return
    failures = failures + 1
    if (failures < 10) print '(a, i0, a)', 'rank ', rank, ': wrong: '//what
  end subroutine

  subroutine by_int32(comm)
    type(rondo_comm), intent(in) :: comm
    integer, parameter :: k = int32
    include 'operations.inc'
  end subroutine

  subroutine by_int64(comm)
    type(rondo_comm), intent(in) :: comm
    integer, parameter :: k = int64
    include 'operations.inc'
  end subroutine

  !> Scalars and arrays of several types and ranks; pairs by a derived type and as two reals.
  subroutine check_types()
    type :: pair
      sequence
      real(real32) :: what
      integer(int32) :: where
    end type
    type(pair) :: p, least
    real(real64) :: two(2, 3), best(2, 3)
    complex(real32) :: z(2, 2), zsum(2, 2)
    integer(int8) :: small, bits
    logical(c_bool) :: flag, any_flag
    integer :: i

    p = pair(real(modulo(rank + 1, n), real32), rank)
    call rondo_allreduce(p, least, 1, RONDO_FLOAT32_INT32, RONDO_MINLOC, comm)
    call expect(least%what == 0 .and. least%where == n - 1, 'MINLOC of a pair')
    do i = 1, 3
      two(:, i) = [real(modulo(rank + i, n), real64), real(rank, real64)]
    end do
    call rondo_allreduce(two, best, 3, RONDO_FLOAT64_FLOAT64, RONDO_MAXLOC, comm)
    do i = 1, 3
      call expect(best(1, i) == n - 1 .and. best(2, i) == modulo(n - 1 - i, n), 'MAXLOC of two reals')
    end do
    z = cmplx(rank, 1, real32)
    call rondo_allreduce(z, zsum, size(z), RONDO_COMPLEX64, RONDO_SUM, comm)
    call expect(all(zsum == cmplx(n * (n - 1) / 2, n, real32)), 'complex')
    small = int(ibset(0, rank), int8)
    call rondo_allreduce(small, bits, 1, RONDO_UINT8, RONDO_BOR, comm)
    call expect(int(bits) == 2**n - 1, 'int8')
    flag = rank == n - 1
    call rondo_allreduce(flag, any_flag, 1, RONDO_BOOL, RONDO_LOR, comm)
    call expect(logical(any_flag), 'logical(c_bool)')
  end subroutine

  !> Elements that are not as long as those of the rondo type (kind C, "what is there is not compared").
  subroutine check_sizes()
    logical :: flags(8), any_flags(8)
    real(real64), target :: x(4), y(4)
    integer(int8) :: bytes(4), sums(4)
    integer :: ierror, dummy
    character(len=12) :: text
    type(c_ptr) :: from, to
    type :: three
      sequence
      real(real64) :: parts(3)
    end type
    type(three) :: t, u

    flags = rank == 0
    any_flags = .false.
    call rondo_allreduce(flags, any_flags, size(flags), RONDO_BOOL, RONDO_LOR, comm, ierror=ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT .and. .not. any(any_flags), 'default logicals as RONDO_BOOL')
    call expect(index(rondo_last_error(comm), 'elements of 4 bytes') > 0, 'the size of the elements')
    call expect(index(rondo_last_error(comm), 'have 1') > 0, 'the size of the type')
    x = 1
    y = -1
    call rondo_allreduce(x, y, size(x), RONDO_FLOAT32, RONDO_SUM, comm, ierror=ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT .and. all(y == -1), 'doubles as RONDO_FLOAT32')
    bytes = 1
    call rondo_allreduce(bytes, sums, 1, RONDO_INT32, RONDO_SUM, comm, ierror=ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT, 'bytes as RONDO_INT32')
    call rondo_allreduce(x, sums, 4, RONDO_FLOAT64, RONDO_SUM, comm, ierror=ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT, 'doubles into bytes')
    call expect(index(rondo_last_error(comm), 'recv has') > 0, 'which one it is')
    call rondo_send(x, 8, RONDO_FLOAT32, modulo(rank + 1, n), comm, ierror=ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT, 'doubles sent as RONDO_FLOAT32')
    ! What is right: the bytes by an address, a string, parts of a derived type, and what this rank does not use.
    x = rank
    from = c_loc(x)
    to = c_loc(y)
    call rondo_broadcast(from, to, 8 * size(x), RONDO_UINT8, n - 1, comm)
    call expect(all(y == n - 1), 'bytes by an address')
    text = merge('said by all ', '            ', rank == 0)
    call rondo_broadcast(text, text, len(text), RONDO_UINT8, 0, comm)
    call expect(text == 'said by all', 'a string')
    t%parts = rank
    call rondo_allreduce(t, u, 3, RONDO_FLOAT64, RONDO_SUM, comm)
    call expect(all(u%parts == n * (n - 1) / 2), 'parts of a derived type')
    dummy = 0
    if (rank == 0) then
      call rondo_reduce(x, y, size(x), RONDO_FLOAT64, RONDO_SUM, 0, comm)
      call expect(all(y == n * (n - 1) / 2), 'reduce')
    else
      call rondo_reduce(x, dummy, size(x), RONDO_FLOAT64, RONDO_SUM, 0, comm)
    end if
  end subroutine

  !> Addresses, sections with and without gaps, what begins in the middle of an array, what has no size.
  subroutine check_buffers()
    integer, target :: from(6, 4), to(6, 4)
    type(c_ptr) :: address, memory
    type(rondo_registration) :: registration
    integer, pointer :: allocated(:)
    integer :: ierror, i

    from = rank
    to = -1
    address = c_loc(to)
    call rondo_allreduce(from, address, size(from), RONDO_INT32, RONDO_SUM, comm)
    call expect(all(to == n * (n - 1) / 2), 'type(c_ptr)')
    ! An expression is either taken for what it is, or refused: never for something else (glue.c).
    from = 7
    to = -1
    call rondo_allreduce(c_loc(from), c_loc(to), size(from), RONDO_INT32, RONDO_SUM, comm, ierror=ierror)
    call expect(all(to == merge(7 * n, -1, ierror == RONDO_SUCCESS)), 'an expression of type(c_ptr)')
    from = rank

    to = -1
    call rondo_allreduce(from(:, 2:3), to(:, 1:2), 12, RONDO_INT32, RONDO_SUM, comm)
    call expect(all(to(:, 1:2) == n * (n - 1) / 2) .and. all(to(:, 3:4) == -1), 'a section without gaps')

    ! Refused on all ranks alike, so nobody waits; the communicator goes on.
    to = -1
    call rondo_allreduce(from(1:6:2, :), to, 12, RONDO_INT32, RONDO_SUM, comm, ierror=ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT .and. all(to == -1), 'a section with gaps')
    call expect(index(rondo_last_error(comm), 'send is not contiguous: it has gaps in dimension 1') > 0, 'its sentence')
    call rondo_allreduce(from, to(2:5, :), 16, RONDO_INT32, RONDO_SUM, comm, ierror=ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT .and. all(to == -1), 'a section with gaps to receive')
    call expect(index(rondo_last_error(), 'recv is not contiguous: it has gaps in dimension 2') > 0, 'its sentence')
    call rondo_group_start()
    call rondo_send(from(1:6:2, 1), 3, RONDO_INT32, 0, comm, ierror=ierror)
    call rondo_group_end(ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT, 'a section with gaps in a group')
    ! One element, or none, has no gaps, whatever the stride.
    call rondo_broadcast(from(1:1, 1:4:3), to(1:1, 1), 0, RONDO_INT32, 0, comm, ierror=ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT, 'two elements a column apart')
    call rondo_broadcast(from(2:2:3, 3:3), to(2, 4:1:-1), 0, RONDO_INT32, 0, comm, ierror=ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT, 'backwards')
    call rondo_broadcast(from(2:2:3, 3:3), to(2, 4:1), 0, RONDO_INT32, 0, comm, ierror=ierror)
    call expect(ierror == RONDO_SUCCESS, 'one element, and none')

    call assumed_size(from, to)
    call rondo_reduce(from, c_null_ptr, merge(size(from), 0, .false.), RONDO_INT32, RONDO_SUM, 0, comm)

    call rondo_mem_alloc(memory, 4 * many, comm)
    call c_f_pointer(memory, allocated, [many])
    call rondo_comm_register(comm, allocated, int(4 * many, int64), registration)
    allocated = [(i, i=1, many)]
    call rondo_allreduce(allocated, allocated, many, RONDO_INT32, RONDO_SUM, comm)
    call expect(all(allocated == [(n * i, i=1, many)]), 'memory of rondo''s own, registered')
    call rondo_comm_deregister(comm, registration)
    call rondo_mem_free(memory, comm)
    call expect(.not. c_associated(memory), 'mem_free')
  end subroutine

  !> A buffer without a known size, and one that begins at an element, as older programs give them.
  subroutine assumed_size(from, to)
    integer, intent(in) :: from(*)
    integer, intent(inout) :: to(*)

    to(1:24) = -1
    call rondo_allreduce(from, to(5), 8, RONDO_INT32, RONDO_SUM, comm)
    call expect(all(to(5:12) == n * (n - 1) / 2), 'from an element on')
    call expect(all(to(1:4) == -1) .and. all(to(13:24) == -1), 'around it')
  end subroutine

  subroutine check_groups()
    integer, asynchronous :: a(many), b(many), left, right
    type(rondo_request) :: request
    logical :: done
    integer :: as_in_c
    real(real64) :: microseconds

    call rondo_request_test(request, done)
    call expect(done, 'a request of nothing')
    a = rank
    b = -1
    left = -1
    right = -1
    call rondo_group_start()
    call rondo_recv(left, 1, RONDO_INT32, modulo(rank - 1, n), comm)
    call rondo_recv(right, 1_int64, RONDO_INT32, modulo(rank + 1, n), by_integer)
    call rondo_send(rank, 1, RONDO_INT32, modulo(rank + 1, n), comm)
    call rondo_send(rank, 1_int64, RONDO_INT32, modulo(rank - 1, n), by_integer)
    call rondo_allreduce(a, b, many, RONDO_INT32, RONDO_MAX, comm)
    call rondo_group_submit(request)
    done = .false.
    do while (.not. done)
      call rondo_request_test(request, done)
    end do
    call expect(left == modulo(rank - 1, n) .and. right == modulo(rank + 1, n), 'messages of a submitted group')
    call expect(all(b == n - 1), 'allreduce in a submitted group')
    call rondo_group_start()
    call rondo_allreduce(a, b, many, RONDO_INT32, RONDO_MAX, comm)
    call rondo_group_estimate(microseconds)
    call expect(microseconds > 0, 'an estimate')
    call rondo_group_start()
    call rondo_barrier(comm)
    call rondo_group_submit(request)
    call rondo_request_wait(request)
    call rondo_request_test(request, as_in_c)
    call expect(as_in_c == 1, 'request_wait')
  end subroutine

  !> The last rank joins the others again.
  subroutine check_grow()
    type(rondo_comm) :: first, grown
    type(rondo_unique_id) :: id
    integer :: total, grown_rank

    call rondo_comm_split(comm, merge(-1, 0, rank == n - 1), rank, first)
    if (rank == 0) call rondo_unique_id_create(id)
    call rondo_broadcast(id%bytes, id%bytes, size(id%bytes), RONDO_INT8, 0, comm)
    if (rank == n - 1) then
      call rondo_comm_grow(rondo_comm(), n, id, n - 1, grown)
    else if (rank == 0) then
      call rondo_comm_grow(first, n, id, -1, grown)
    else
      call rondo_comm_grow(first, n, rank=-1, newcomm=grown)
    end if
    call rondo_comm_rank(grown, grown_rank)
    call rondo_allreduce(rank, total, 1, RONDO_INT32, RONDO_SUM, grown)
    call expect(grown_rank == rank .and. total == n * (n - 1) / 2, 'allreduce after a grow')
    call rondo_comm_destroy(grown)
    if (rank /= n - 1) call rondo_comm_destroy(first)
  end subroutine

  !> Communicators of communicators, own operators, questions, errors.
  subroutine check_others()
    type(rondo_comm) :: half, fewer, nothing, alone(1)
    type(rondo_status) :: status
    type(rondo_shape) :: shape
    type(rondo_memory) :: before, memory
    type(rondo_work) :: work
    integer(int64) :: hook
    character(len=:), allocatable :: text
    type(rondo_work_info) :: info
    type(rondo_request) :: none
    type(rondo_unique_id) :: id
    integer :: ierror, error, device, half_size, half_rank, total, scaled, sized, op

    call rondo_comm_split(comm, modulo(rank, 2), -rank, half)
    call rondo_comm_size(half, half_size)
    call rondo_comm_rank(half, half_rank)
    call expect(half_size == n / 2 .and. half_rank == n / 2 - 1 - rank / 2, 'split')
    call rondo_allreduce(rank, total, 1, RONDO_INT32, RONDO_MIN, half)
    call expect(total == modulo(rank, 2), 'allreduce on a half')
    call rondo_comm_finalize(half)
    call rondo_comm_test(half, error)
    call expect(error /= 0, 'test')
    call rondo_comm_destroy(half)
    call rondo_comm_split(comm, -1, 0, nothing)
    call expect(.not. c_associated(nothing%handle), 'split to nothing')
    if (rank /= 0) then
      call rondo_comm_shrink(comm, [0], 1, fewer)
      call rondo_comm_size(fewer, sized)
      call expect(sized == n - 1, 'shrink')
      call rondo_comm_destroy(fewer)
    end if
    call check_grow()
    call rondo_unique_id_create(id)
    call rondo_comm_create(alone(1), 1, id, 0)
    call rondo_comm_destroy(alone(1))
    call rondo_comm_create_all(alone, 1, config=config)
    call rondo_comm_revoke(alone(1))
    call rondo_barrier(alone(1), ierror=ierror)
    call expect(ierror == RONDO_ERR_ABORTED, 'revoke')
    call rondo_comm_abort(alone(1))
    call expect(.not. c_associated(alone(1)%handle), 'abort')

    call rondo_op_create_premulsum(op, rank + 1, RONDO_INT32, 0, comm)
    call rondo_allreduce(10, scaled, 1, RONDO_INT32, op, comm)
    call expect(scaled == 5 * n * (n + 1), 'premulsum')
    call rondo_op_destroy(op, comm)

    call rondo_barrier(comm)
    call rondo_barrier(comm, c_null_ptr, ierror)
    call rondo_comm_on_wait(comm, c_null_funptr, c_null_ptr)
    call expect(ierror == RONDO_SUCCESS, 'a stream that is none')
    call rondo_timeout_set(comm, 60000_int64)
    call rondo_timeout_set(comm, -2_int64, ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT, 'timeout_set')
    call rondo_dump('/nowhere/at all', 0, ierror)
    call expect(ierror /= RONDO_SUCCESS, 'dump')
    call rondo_dump_fd(-1, RONDO_DUMP_RECORD, ierror)
    call expect(ierror /= RONDO_SUCCESS, 'dump_fd')
    call rondo_hook(RONDO_HOOK_FAILED, c_null_funptr, c_null_ptr, hook, ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT, 'hook')
    call rondo_unhook(0_int64, ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT, 'unhook')
    call rondo_timeout_extend(comm, 1000_int64)
    call rondo_timeout_next(60000_int64)
    call rondo_timeout_next(-2_int64, ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT, 'timeout_next')
    call rondo_force_next(proto='pigeon', ierror=ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT, 'force_next')
    call rondo_prefer_next('ring', 'simple', ierror)
    call expect(ierror == RONDO_SUCCESS, 'prefer_next')
    call rondo_force_next()
    call rondo_resources_next(0, ierror=ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT, 'resources_next')
    call rondo_resources_next(cta_policy=RONDO_CTA_POLICY_ZERO)
    call rondo_resources_next()
    call rondo_launch_event_next(c_null_ptr)
    call rondo_on_error(comm, RONDO_ON_ERROR_RETURN)
    call rondo_tag(41_int64)
    call rondo_barrier(comm)
    call rondo_comm_status(comm, status)
    call expect(index(status%call, 'tag 41') > 0, 'the tag of a status')
    call rondo_work_last(comm, work)
    call rondo_work_query(work, info)
    call expect(info%state == RONDO_WORK_COMPLETED .and. info%tag == 41 .and. info%call(1:7) == 'barrier', 'a work')
    call rondo_work_wait(work, 0_int64)
    call rondo_request_work(none, 0, work, ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT, 'works of no request')
    call rondo_tag(0_int64, ierror)
    call expect(ierror == RONDO_SUCCESS, 'no tag')
    call rondo_barrier(comm)
    call rondo_comm_status(comm, status)
    call expect(status%collectives > 0 .and. status%collectives_ended == status%collectives, 'calls of a status')
    call expect(status%waits_for == -1 .and. status%call(1:19) == 'barrier, collective', 'the call of a status')
    call rondo_comm_status(nothing, status, ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT .and. status%collectives == 0, 'status of nothing')
    shape%nranks = n
    call rondo_comm_memory(config, shape, before)
    call rondo_comm_memory_now(comm, memory)
    call expect(memory%shared == before%shared .and. memory%shared > 0, 'memory')
    call expect(memory%device == 0 .and. memory%pinned == 0 .and. memory%network == before%network, 'other memory')
    call rondo_comm_suspend(comm)
    call rondo_barrier(comm, ierror=ierror)
    call expect(ierror == RONDO_ERR_INVALID_USAGE, 'a call on a suspended communicator')
    call rondo_comm_resume(comm)
    call expect(memory%suspend == 0 .and. memory%suspended == 0, 'what a suspension gives back')
    config%blocks_least = 1025
    call rondo_comm_memory(config, shape, memory, ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT .and. index(rondo_last_error(), 'blocks_least is 1025') > 0, &
      'blocks_least')
    config%blocks_least = -1
    config%net_channels = 9
    call rondo_comm_memory(config, shape, memory, ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT .and. index(rondo_last_error(), 'net_channels is 9') > 0, &
      'net_channels')
    config%net_channels = -1
    config%nan_check = RONDO_NAN_FAIL + 1
    call rondo_comm_memory(config, shape, memory, ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT .and. index(rondo_last_error(), 'nan_check is 3') > 0, 'nan_check')
    config%nan_check = -1
    shape%nnodes = n + 1
    call rondo_comm_memory(shape=shape, memory=memory, ierror=ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT .and. memory%shared == 0, 'memory of more nodes than ranks')
    call rondo_comm_get_error(comm, error)
    call rondo_comm_device(comm, device)
    call expect(error == RONDO_SUCCESS .and. device == RONDO_DEVICE_HOST, 'get_error, device')
    call expect(index(rondo_explain(comm), 'nobody') > 0 .and. rondo_explain(nothing) == '', 'explain')
    call expect(rondo_version() > 0 .and. rondo_type_size(RONDO_FLOAT64_INT32) == 16, 'version, type_size')
    call expect(rondo_result_string(RONDO_ERR_TIMEOUT) == 'timeout', 'result_string')

    call rondo_setting_get('RONDO_DEBUG', text)
    call expect(text == 'none' .and. rondo_setting_name(-1) == '' .and. index(rondo_setting_name(0), 'RONDO_') == 1, &
                'setting_get, setting_name')
    call rondo_setting_get('RONDO_NOTHING', text, ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT .and. text == '', 'no such setting')

    call rondo_allreduce(rank, total, -1, RONDO_INT32, RONDO_SUM, comm, ierror=ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT, 'a negative count')
    call expect(index(rondo_last_error(comm), 'negative') > 0, 'its sentence')
    call rondo_barrier(nothing, ierror=ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT, 'no communicator')
    call expect(index(rondo_last_error(), 'comm is NULL') > 0, 'last_error without a communicator')
  end subroutine

  subroutine check_one_sided()
    type(rondo_window) :: window
    type(rondo_device) :: device
    type(rondo_device_view) :: view
    type(rondo_wait_desc) :: came(1)
    type(c_ptr) :: where
    real(real64), pointer :: part(:)
    real(real64) :: x(3), y(3), from_x(3)
    integer :: to, from, ierror

    to = modulo(rank + 1, n)
    from = modulo(rank - 1 + n, n)
    x = [value(rank, 1), value(rank, 2), value(rank, 3)]
    from_x = [value(from, 1), value(from, 2), value(from, 3)]
    y = 0
    call rondo_window_create(comm, c_null_ptr, 800, window, 0)
    call rondo_window_buffer(comm, window, where)
    call c_f_pointer(where, part, [100])
    call rondo_put(x, 3, RONDO_FLOAT64, to, window, 8, 0, 0, comm)
    call rondo_fence(to, 0, comm)
    call rondo_put_signal(x(2), 1_int64, RONDO_FLOAT64, to, window, 80_int64, 2, 0, 0, comm)
    call rondo_signal(to, 2, 0, 0, comm)
    came(1) = rondo_wait_desc(2, from, 2, 0)
    call rondo_wait_signal(1, came, comm)
    call expect(all(part(2:4) == from_x) .and. part(11) == from_x(2), 'what was put')
    call rondo_flush(RONDO_PEER_ALL, 0, comm)
    call rondo_get(y, 3, RONDO_FLOAT64, to, window, 8, 0, 0, comm)
    call expect(all(y == x), 'what was got')
    call rondo_put(x, 3_int64, RONDO_FLOAT64, to, window, 784_int64, 0, 0, comm, ierror=ierror)
    call expect(ierror == RONDO_ERR_INVALID_ARGUMENT, 'a put beyond the window')
    call rondo_window_destroy(comm, window)
    call expect(.not. c_associated(window%handle), 'window_destroy')
    call rondo_window_create(comm, y, 24_int64, window, 0)
    call rondo_put(x, 3, RONDO_FLOAT64, to, window, 0, 0, 0, comm)
    call rondo_window_destroy(comm, window)
    call expect(all(y == from_x), 'what was put into an array')
    call rondo_device_create(comm, rondo_device_config(barriers=8), device, ierror)
    call expect(ierror == RONDO_ERR_UNSUPPORTED, 'barriers for kernels, on host memory')
    call rondo_device_window(comm, window, view, ierror)
    call expect(ierror == RONDO_ERR_UNSUPPORTED, 'where kernels find a window')
    call rondo_device_destroy(comm, device, ierror)
    call expect(ierror == RONDO_ERR_UNSUPPORTED .and. device%barriers == 0, 'no barriers')
  end subroutine
end program
