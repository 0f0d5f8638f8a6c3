!> rondo for Fortran: everything in rondo.h, as subroutines with the same names and orders of arguments. rondo.h is the
!> manual; doc/fortran.md describes what differs in Fortran. This module does not use MPI: module rondo_mpi adds the one
!> call that does.
!>
!> Every subroutine ends with an optional ierror that gets the result (RONDO_SUCCESS is 0). Without it an error ends the
!> program by `error stop` with its message. Outputs are set on success only. The calls with counts are in
!> rondo_counts_int64.f90, those without counts are here.
module rondo
  use, intrinsic :: iso_c_binding, only: c_double, c_funptr, c_int, c_int64_t, c_ptr, c_null_ptr, c_size_t
  use rondo_types
  use rondo_counts_int32
  use rondo_counts_int64
  implicit none
  private :: c_double, c_funptr, c_int, c_int64_t, c_ptr, c_null_ptr, c_size_t

  ! ---- queries ----

  interface
    !> version is 10000 * major + 100 * minor + patch.
    function rondo_version() bind(C, name="rondo_version") result(version)
      import :: c_int
      integer(c_int) :: version
    end function
  end interface

  ! ---- communicators ----

  interface
    subroutine rondo_unique_id_create(id, ierror) bind(C, name="rondo_f_unique_id_create")
      import :: c_int, rondo_unique_id
      type(rondo_unique_id), intent(out) :: id
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine rondo_comm_finalize(comm, ierror) bind(C, name="rondo_f_comm_finalize")
      import :: c_int, rondo_comm
      type(rondo_comm), intent(in) :: comm
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    !> done is nonzero if everything that was enqueued or submitted is complete.
    subroutine rondo_comm_test(comm, done, ierror) bind(C, name="rondo_f_comm_test")
      import :: c_int, rondo_comm
      type(rondo_comm), intent(in) :: comm
      integer(c_int), intent(out) :: done
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine rondo_comm_destroy(comm, ierror) bind(C, name="rondo_f_comm_destroy")
      import :: c_int, rondo_comm
      type(rondo_comm), intent(inout) :: comm
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine rondo_comm_abort(comm, ierror) bind(C, name="rondo_f_comm_abort")
      import :: c_int, rondo_comm
      type(rondo_comm), intent(inout) :: comm
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine rondo_comm_revoke(comm, ierror) bind(C, name="rondo_f_comm_revoke")
      import :: c_int, rondo_comm
      type(rondo_comm), intent(in) :: comm
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    !> Gives back the device memory of a communicator that is not used; collective. Until rondo_comm_resume its calls
    !> are RONDO_ERR_INVALID_USAGE.
    subroutine rondo_comm_suspend(comm, ierror) bind(C, name="rondo_f_comm_suspend")
      import :: c_int, rondo_comm
      type(rondo_comm), intent(in) :: comm
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine rondo_comm_resume(comm, ierror) bind(C, name="rondo_f_comm_resume")
      import :: c_int, rondo_comm
      type(rondo_comm), intent(in) :: comm
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    !> Returns an error that has occurred in the background, without waiting.
    subroutine rondo_comm_get_error(comm, error, ierror) bind(C, name="rondo_f_comm_get_error")
      import :: c_int, rondo_comm
      type(rondo_comm), intent(in) :: comm
      integer(c_int), intent(out) :: error
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    !> From the next call on, an operation that waits longer fails; 0: never, -1: RONDO_TIMEOUT_MS.
    subroutine rondo_timeout_set(comm, timeout_ms, ierror) bind(C, name="rondo_f_timeout_set")
      import :: c_int, c_int64_t, rondo_comm
      type(rondo_comm), intent(in) :: comm
      integer(c_int64_t), intent(in) :: timeout_ms
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    !> Adds so many milliseconds to all limits, until the first call that begins from now on is over.
    subroutine rondo_timeout_extend(comm, timeout_ms, ierror) bind(C, name="rondo_f_timeout_extend")
      import :: c_int, c_int64_t, rondo_comm
      type(rondo_comm), intent(in) :: comm
      integer(c_int64_t), intent(in) :: timeout_ms
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    !> Gives this thread's next operation or group a limit of its own; 0: never, -1: none of its own.
    subroutine rondo_timeout_next(timeout_ms, ierror) bind(C, name="rondo_f_timeout_next")
      import :: c_int, c_int64_t
      integer(c_int64_t), intent(in) :: timeout_ms
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    !> Marks this thread's next operations; 0: no mark. Collectives of other ranks must have the same.
    subroutine rondo_tag(tag, ierror) bind(C, name="rondo_f_tag")
      import :: c_int, c_int64_t
      integer(c_int64_t), intent(in) :: tag
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    !> Writes the last calls of this process to a descriptor of C.
    subroutine rondo_dump_fd(fd, format, ierror) bind(C, name="rondo_f_dump_fd")
      import :: c_int
      integer(c_int), intent(in) :: fd, format
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    !> Has `call` (c_funloc of a bind(C) subroutine of a rondo_event and a type(c_ptr), value) called when that happens.
    subroutine rondo_hook(kind, call, arg, handle, ierror) bind(C, name="rondo_f_hook")
      import :: c_int, c_int64_t, c_ptr, c_funptr
      integer(c_int), intent(in) :: kind
      type(c_funptr), intent(in) :: call
      type(c_ptr), intent(in) :: arg
      integer(c_int64_t), intent(out) :: handle
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine rondo_unhook(handle, ierror) bind(C, name="rondo_f_unhook")
      import :: c_int, c_int64_t
      integer(c_int64_t), intent(in) :: handle
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    !> This rank's last call on the communicator.
    subroutine rondo_work_last(comm, work, ierror) bind(C, name="rondo_f_work_last")
      import :: c_int, rondo_comm, rondo_work
      type(rondo_comm), intent(in) :: comm
      type(rondo_work), intent(out) :: work
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    !> The operation `i` of a request, counted from 0.
    subroutine rondo_request_work(request, i, work, ierror) bind(C, name="rondo_f_request_work")
      import :: c_int, rondo_request, rondo_work
      type(rondo_request), intent(in) :: request
      integer(c_int), intent(in) :: i
      type(rondo_work), intent(out) :: work
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    !> Waits until the call is complete, or so many milliseconds; -1: until it is, or has failed.
    subroutine rondo_work_wait(work, timeout_ms, ierror) bind(C, name="rondo_f_work_wait")
      import :: c_int, c_int64_t, rondo_work
      type(rondo_work), intent(in) :: work
      integer(c_int64_t), intent(in) :: timeout_ms
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    !> What a call does whose communicator has failed: RONDO_ON_ERROR_*; with a null handle, of those made from now on.
    subroutine rondo_on_error(comm, on_error, ierror) bind(C, name="rondo_f_on_error")
      import :: c_int, rondo_comm
      type(rondo_comm), intent(in) :: comm
      integer(c_int), intent(in) :: on_error
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    !> Has `call` (c_funloc of a bind(C) subroutine of one type(c_ptr), value) called while an operation waits.
    subroutine rondo_comm_on_wait(comm, call, data, ierror) bind(C, name="rondo_f_comm_on_wait")
      import :: c_int, c_ptr, c_funptr, rondo_comm
      type(rondo_comm), intent(in) :: comm
      type(c_funptr), intent(in) :: call
      type(c_ptr), intent(in) :: data
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    !> The number of this rank, counted from 0.
    subroutine rondo_comm_rank(comm, rank, ierror) bind(C, name="rondo_f_comm_rank")
      import :: c_int, rondo_comm
      type(rondo_comm), intent(in) :: comm
      integer(c_int), intent(out) :: rank
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine rondo_comm_size(comm, size, ierror) bind(C, name="rondo_f_comm_size")
      import :: c_int, rondo_comm
      type(rondo_comm), intent(in) :: comm
      integer(c_int), intent(out) :: size
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    !> The device is RONDO_DEVICE_HOST or the number of a CUDA device.
    subroutine rondo_comm_device(comm, device, ierror) bind(C, name="rondo_f_comm_device")
      import :: c_int, rondo_comm
      type(rondo_comm), intent(in) :: comm
      integer(c_int), intent(out) :: device
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine rondo_comm_deregister(comm, reg, ierror) bind(C, name="rondo_f_comm_deregister")
      import :: c_int, rondo_comm, rondo_registration
      type(rondo_comm), intent(in) :: comm
      type(rondo_registration), intent(inout) :: reg
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    !> Frees memory of rondo_mem_alloc; the address is c_null_ptr afterwards.
    subroutine rondo_mem_free(buffer, comm, ierror) bind(C, name="rondo_f_mem_free")
      import :: c_int, c_ptr, rondo_comm
      type(c_ptr), intent(inout) :: buffer
      type(rondo_comm), intent(in) :: comm
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

  ! ---- one-sided operations without a buffer ----

  interface
    subroutine rondo_window_destroy(comm, window, ierror) bind(C, name="rondo_f_window_destroy")
      import :: c_int, rondo_comm, rondo_window
      type(rondo_comm), intent(in) :: comm
      type(rondo_window), intent(inout) :: window
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    !> Where this rank's part lies: c_f_pointer makes an array of it.
    subroutine rondo_window_buffer(comm, window, buffer, ierror) bind(C, name="rondo_f_window_buffer")
      import :: c_int, c_ptr, rondo_comm, rondo_window
      type(rondo_comm), intent(in) :: comm
      type(rondo_window), intent(in) :: window
      type(c_ptr), intent(out) :: buffer
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    !> Barriers and signals for kernels; it is collective.
    subroutine rondo_device_create(comm, config, device, ierror) bind(C, name="rondo_f_device_create")
      import :: c_int, rondo_comm, rondo_device, rondo_device_config
      type(rondo_comm), intent(in) :: comm
      type(rondo_device_config), intent(in) :: config
      type(rondo_device), intent(inout) :: device
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine rondo_device_destroy(comm, device, ierror) bind(C, name="rondo_f_device_destroy")
      import :: c_int, rondo_comm, rondo_device
      type(rondo_comm), intent(in) :: comm
      type(rondo_device), intent(inout) :: device
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    !> Where kernels find the parts of a window.
    subroutine rondo_device_window(comm, window, view, ierror) bind(C, name="rondo_f_device_window")
      import :: c_int, rondo_comm, rondo_device_view, rondo_window
      type(rondo_comm), intent(in) :: comm
      type(rondo_window), intent(in) :: window
      type(rondo_device_view), intent(inout) :: view
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine rondo_signal(peer, signal, context, flags, comm, stream, ierror) bind(C, name="rondo_f_signal")
      import :: c_int, c_ptr, rondo_comm
      integer(c_int), intent(in) :: peer, signal, context, flags
      type(rondo_comm), intent(in) :: comm
      type(c_ptr), intent(in), optional :: stream
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine rondo_wait_signal(nwaits, waits, comm, stream, ierror) bind(C, name="rondo_f_wait_signal")
      import :: c_int, c_ptr, rondo_comm, rondo_wait_desc
      integer(c_int), intent(in) :: nwaits
      type(rondo_wait_desc), intent(in) :: waits(*)
      type(rondo_comm), intent(in) :: comm
      type(c_ptr), intent(in), optional :: stream
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine rondo_flush(peer, context, comm, stream, ierror) bind(C, name="rondo_f_flush")
      import :: c_int, c_ptr, rondo_comm
      integer(c_int), intent(in) :: peer, context
      type(rondo_comm), intent(in) :: comm
      type(c_ptr), intent(in), optional :: stream
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine rondo_fence(peer, context, comm, stream, ierror) bind(C, name="rondo_f_fence")
      import :: c_int, c_ptr, rondo_comm
      integer(c_int), intent(in) :: peer, context
      type(rondo_comm), intent(in) :: comm
      type(c_ptr), intent(in), optional :: stream
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

  ! ---- the operation without a buffer, groups, operators ----

  interface
    subroutine rondo_barrier(comm, stream, ierror) bind(C, name="rondo_f_barrier")
      import :: c_int, c_ptr, rondo_comm
      type(rondo_comm), intent(in) :: comm
      type(c_ptr), intent(in), optional :: stream
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine rondo_group_start(ierror) bind(C, name="rondo_f_group_start")
      import :: c_int
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine rondo_group_end(ierror) bind(C, name="rondo_f_group_end")
      import :: c_int
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine rondo_group_estimate(microseconds, ierror) bind(C, name="rondo_f_group_estimate")
      import :: c_int, c_double
      real(c_double), intent(out) :: microseconds
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine rondo_group_submit(request, ierror) bind(C, name="rondo_f_group_submit")
      import :: c_int, rondo_request
      type(rondo_request), intent(inout) :: request
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine rondo_request_wait(request, ierror) bind(C, name="rondo_f_request_wait")
      import :: c_int, rondo_request
      type(rondo_request), intent(inout) :: request
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    !> scalar has one element of `type`. scalar_on_device is 0 or 1.
    subroutine rondo_op_create_premulsum(op, scalar, type, scalar_on_device, comm, ierror) &
      bind(C, name="rondo_f_op_create_premulsum")
      import :: c_int, rondo_comm
      integer(c_int), intent(out) :: op
      type(*), dimension(..), intent(in), target :: scalar
      integer(c_int), intent(in) :: type, scalar_on_device
      type(rondo_comm), intent(in) :: comm
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine rondo_op_destroy(op, comm, ierror) bind(C, name="rondo_f_op_destroy")
      import :: c_int, rondo_comm
      integer(c_int), intent(in) :: op
      type(rondo_comm), intent(in) :: comm
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

  !> `done` is a logical, or an integer as in C.
  interface rondo_request_test
    procedure request_test_integer
    procedure request_test_logical
  end interface
  private :: request_test_integer, request_test_logical

contains

  !> Returns the bytes of an element, or 0 if there is no such type.
  function rondo_type_size(type) result(bytes)
    use rondo_inside, only: c_type_size
    integer(c_int), intent(in) :: type
    integer(c_size_t) :: bytes

    bytes = c_type_size(type)
  end function

  !> Returns a few words that describe a value of ierror.
  function rondo_result_string(result) result(text)
    use rondo_inside, only: c_result_string, text_at
    integer(c_int), intent(in) :: result
    character(len=:), allocatable :: text

    text = text_at(c_result_string(result))
  end function

  !> Returns the message of the last error of the communicator or, without one, of this thread; '' if there was none.
  function rondo_last_error(comm) result(text)
    use rondo_inside, only: c_last_error, text_at
    type(rondo_comm), intent(in), optional :: comm
    character(len=:), allocatable :: text

    if (present(comm)) then
      text = text_at(c_last_error(comm%handle))
    else
      text = text_at(c_last_error(c_null_ptr))
    end if
  end function

  !> Returns who holds the communicator up, in a sentence; '' if it is none.
  function rondo_explain(comm) result(text)
    use rondo_inside, only: c_explain, text_at
    use, intrinsic :: iso_c_binding, only: c_char, c_loc, c_size_t
    type(rondo_comm), intent(in) :: comm
    character(len=:), allocatable :: text
    character(kind=c_char), target :: room(1536)

    text = ''
    if (c_explain(comm%handle, room, size(room, kind=c_size_t)) == RONDO_SUCCESS) text = text_at(c_loc(room))
  end function

  !> How far this rank is with a communicator: its calls, the one that it is in, and whom it waits for.
  subroutine rondo_comm_status(comm, status, ierror)
    use rondo_inside, only: c_status, status_c, text_at
    use, intrinsic :: iso_c_binding, only: c_loc
    type(rondo_comm), intent(in) :: comm
    type(rondo_status), intent(out) :: status
    integer(c_int), intent(out), optional :: ierror
    type(status_c), target :: c
    integer(c_int) :: error

    if (present(ierror)) then
      call c_status(comm, c, error)
      ierror = error
      if (error /= 0) return
    else
      call c_status(comm, c)
    end if
    status = rondo_status(c%collectives, c%collectives_ended, c%sends, c%sends_ended, c%recvs, c%recvs_ended, c%bytes, &
                          c%waits_ms, c%waits_for, text_at(c_loc(c%call)))
  end subroutine

  !> What a communicator of this shape would take of a rank's memory.
  subroutine rondo_comm_memory(config, shape, memory, ierror)
    use rondo_inside, only: c_memory, plain
    type(rondo_config), intent(in), optional :: config
    type(rondo_shape), intent(in) :: shape
    type(rondo_memory), intent(out) :: memory
    integer(c_int), intent(out), optional :: ierror

    call c_memory(plain(config), shape, memory, ierror)
  end subroutine

  !> What the communicator holds of this rank's memory now.
  subroutine rondo_comm_memory_now(comm, memory, ierror)
    use rondo_inside, only: c_memory_now
    type(rondo_comm), intent(in) :: comm
    type(rondo_memory), intent(out) :: memory
    integer(c_int), intent(out), optional :: ierror

    call c_memory_now(comm, memory, ierror)
  end subroutine

  !> Writes down the last calls of this process in a new file; a blank path: one in RONDO_DUMP_DIR.
  subroutine rondo_dump(path, flags, ierror)
    use rondo_inside, only: c_dump
    use, intrinsic :: iso_c_binding, only: c_null_char
    character(len=*), intent(in) :: path
    integer(c_int), intent(in) :: flags
    integer(c_int), intent(out), optional :: ierror

    call c_dump(trim(path)//c_null_char, flags, ierror)
  end subroutine

  !> What is known of a call.
  subroutine rondo_work_query(work, info, ierror)
    use rondo_inside, only: c_work_query, work_info_c, text_at
    use, intrinsic :: iso_c_binding, only: c_loc
    type(rondo_work), intent(in) :: work
    type(rondo_work_info), intent(out) :: info
    integer(c_int), intent(out), optional :: ierror
    type(work_info_c), target :: c

    call c_work_query(work, c, ierror)
    info = rondo_work_info(c%state, c%result, c%number, c%count, c%bytes, c%tag, c%begun_ns, c%ended_ns, c%waits_for, &
                           c%waits_ms, c%step, c%steps, text_at(c_loc(c%call)), text_at(c_loc(c%algo)), &
                           text_at(c_loc(c%proto)), c%limit_ms)
  end subroutine

  !> Sets a variable of `rondo-info --env` for this process; a blank value resets it.
  subroutine rondo_setting_set(name, value, ierror)
    use rondo_inside, only: c_setting_set
    use, intrinsic :: iso_c_binding, only: c_null_char
    character(len=*), intent(in) :: name, value
    integer(c_int), intent(out), optional :: ierror

    call c_setting_set(trim(name)//c_null_char, trim(value)//c_null_char, ierror)
  end subroutine

  !> What RONDO_ALGO and RONDO_PROTO are for this thread's next collective; one that is absent stays as it is.
  subroutine rondo_force_next(algo, proto, ierror)
    use rondo_inside, only: c_force_next, text_of
    use, intrinsic :: iso_c_binding, only: c_char
    character(len=*), intent(in), optional :: algo, proto
    integer(c_int), intent(out), optional :: ierror
    character(kind=c_char, len=:), allocatable, target :: a, p

    call c_force_next(text_of(algo, a), text_of(proto, p), ierror)
  end subroutine

  !> The same, but where it cannot serve the collective, the choice is rondo's.
  subroutine rondo_prefer_next(algo, proto, ierror)
    use rondo_inside, only: c_prefer_next, text_of
    use, intrinsic :: iso_c_binding, only: c_char
    character(len=*), intent(in), optional :: algo, proto
    integer(c_int), intent(out), optional :: ierror
    character(kind=c_char, len=:), allocatable, target :: a, p

    call c_prefer_next(text_of(algo, a), text_of(proto, p), ierror)
  end subroutine

  !> Budgets of this thread's next collective: multiprocessors, RONDO_CTA_POLICY_*; -1 or absent: the communicator's.
  subroutine rondo_resources_next(blocks, cta_policy, ierror)
    use rondo_inside, only: c_resources_next
    integer(c_int), intent(in), optional :: blocks, cta_policy
    integer(c_int), intent(out), optional :: ierror
    integer(c_int) :: b, p

    b = -1
    p = -1
    if (present(blocks)) b = blocks
    if (present(cta_policy)) p = cta_policy
    call c_resources_next(b, p, ierror)
  end subroutine

  !> Has a CUDA event recorded when the kernel of this thread's next collective has been launched; c_null_ptr: none.
  subroutine rondo_launch_event_next(event, ierror)
    use rondo_inside, only: c_launch_event_next
    type(c_ptr), intent(in) :: event
    integer(c_int), intent(out), optional :: ierror

    call c_launch_event_next(event, ierror)
  end subroutine

  !> What a communicator made now would read for a variable of `rondo-info --env`.
  subroutine rondo_setting_get(name, value, ierror)
    use rondo_inside, only: c_setting_get, text_at
    use, intrinsic :: iso_c_binding, only: c_char, c_null_char, c_loc
    character(len=*), intent(in) :: name
    character(len=:), allocatable, intent(out) :: value
    integer(c_int), intent(out), optional :: ierror
    character(kind=c_char), target :: text(512)

    text(1) = c_null_char
    call c_setting_get(trim(name)//c_null_char, text, size(text, kind=c_size_t), ierror)
    value = text_at(c_loc(text))
  end subroutine

  !> The name of the variable with this index, from 0 on; '' behind the last.
  function rondo_setting_name(index) result(text)
    use rondo_inside, only: c_setting_name, text_at
    use, intrinsic :: iso_c_binding, only: c_associated
    integer(c_int), intent(in) :: index
    character(len=:), allocatable :: text

    text = ''
    if (c_associated(c_setting_name(index))) text = text_at(c_setting_name(index))
  end function

  subroutine rondo_comm_create(comm, nranks, id, rank, config, ierror)
    use rondo_inside, only: c_create, plain
    type(rondo_comm), intent(out) :: comm
    integer(c_int), intent(in) :: nranks, rank
    type(rondo_unique_id), intent(in) :: id
    type(rondo_config), intent(in), optional :: config
    integer(c_int), intent(out), optional :: ierror

    call c_create(comm, nranks, id, rank, plain(config), ierror)
  end subroutine

  subroutine rondo_comm_create_scalable(comm, nranks, ids, nids, rank, config, ierror)
    use rondo_inside, only: c_create_scalable, plain
    type(rondo_comm), intent(out) :: comm
    integer(c_int), intent(in) :: nranks, nids, rank
    type(rondo_unique_id), intent(in) :: ids(nids)
    type(rondo_config), intent(in), optional :: config
    integer(c_int), intent(out), optional :: ierror

    call c_create_scalable(comm, nranks, ids, nids, rank, plain(config), ierror)
  end subroutine

  !> Creates all ranks in one process. devices has one entry for each rank; if it is absent, config's device is used.
  subroutine rondo_comm_create_all(comms, ndevices, devices, config, ierror)
    use rondo_inside, only: c_create_all, plain
    integer(c_int), intent(in) :: ndevices
    type(rondo_comm), intent(out) :: comms(ndevices)
    integer(c_int), intent(in), optional :: devices(ndevices)
    type(rondo_config), intent(in), optional :: config
    integer(c_int), intent(out), optional :: ierror

    call c_create_all(comms, ndevices, devices, plain(config), ierror)
  end subroutine

  !> A rank with a negative color gets a newcomm whose handle is c_null_ptr.
  subroutine rondo_comm_split(comm, color, key, newcomm, config, ierror)
    use rondo_inside, only: c_split, plain
    type(rondo_comm), intent(in) :: comm
    integer(c_int), intent(in) :: color, key
    type(rondo_comm), intent(out) :: newcomm
    type(rondo_config), intent(in), optional :: config
    integer(c_int), intent(out), optional :: ierror

    call c_split(comm, color, key, newcomm, plain(config), ierror)
  end subroutine

  !> A new rank's comm is rondo_comm(), whose handle is c_null_ptr. A member that leaves out id learns it from another one.
  subroutine rondo_comm_grow(comm, nranks, id, rank, newcomm, config, ierror)
    use rondo_inside, only: c_grow, plain
    type(rondo_comm), intent(in) :: comm
    integer(c_int), intent(in) :: nranks, rank
    type(rondo_unique_id), intent(in), optional :: id
    type(rondo_comm), intent(out) :: newcomm
    type(rondo_config), intent(in), optional :: config
    integer(c_int), intent(out), optional :: ierror

    call c_grow(comm, nranks, id, rank, newcomm, plain(config), ierror)
  end subroutine

  subroutine rondo_comm_shrink(comm, excluded, nexcluded, newcomm, config, ierror)
    use rondo_inside, only: c_shrink, plain
    type(rondo_comm), intent(in) :: comm
    integer(c_int), intent(in) :: nexcluded, excluded(nexcluded)
    type(rondo_comm), intent(out) :: newcomm
    type(rondo_config), intent(in), optional :: config
    integer(c_int), intent(out), optional :: ierror

    call c_shrink(comm, excluded, nexcluded, newcomm, plain(config), ierror)
  end subroutine

  subroutine request_test_integer(request, done, ierror)
    use rondo_inside, only: c_request_test
    type(rondo_request), intent(inout) :: request
    integer(c_int), intent(out) :: done
    integer(c_int), intent(out), optional :: ierror

    done = 0
    call c_request_test(request, done, ierror)
  end subroutine

  subroutine request_test_logical(request, done, ierror)
    use rondo_inside, only: c_request_test
    type(rondo_request), intent(inout) :: request
    logical, intent(out) :: done
    integer(c_int), intent(out), optional :: ierror
    integer(c_int) :: is_done

    is_done = 0
    call c_request_test(request, is_done, ierror)
    done = is_done /= 0
  end subroutine
end module
