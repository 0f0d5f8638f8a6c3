!> Internals of module rondo: the interfaces to lib/fortran/calls.c, which its subroutines wrap, and the functions that
!> C calls (glue.h). Programs do not use this module.
module rondo_inside
  use, intrinsic :: iso_c_binding, only: c_int, c_int64_t, c_char, c_size_t, c_ptr, c_null_ptr, c_null_char, &
                                         c_f_pointer, c_loc
  use rondo_types
  implicit none

  !> rondo_config in the form that C takes.
  type, bind(C) :: config_c
    integer(c_int) :: device, blocking, on_error
    integer(c_int64_t) :: timeout_ms, first_timeout_ms, stall_ms
    integer(c_int) :: signals, contexts, blocks, cta_policy, traffic_class, blocks_least, net_channels, nan_check
    character(kind=c_char) :: name(64), network(64)
  end type

  !> rondo_status_t.
  type, bind(C) :: status_c
    integer(c_size_t) :: size
    integer(c_int64_t) :: collectives, collectives_ended, sends, sends_ended, recvs, recvs_ended, bytes
    integer(c_int) :: waits_for
    integer(c_int64_t) :: waits_ms
    character(kind=c_char) :: call(160)
  end type

  !> rondo_work_info_t.
  type, bind(C) :: work_info_c
    integer(c_size_t) :: size
    integer(c_int) :: state, result
    integer(c_int64_t) :: number, count, bytes, tag, begun_ns, ended_ns
    integer(c_int) :: waits_for
    integer(c_int64_t) :: waits_ms, step, steps
    character(kind=c_char) :: call(160)
    character(kind=c_char) :: algo(32), proto(16)
    integer(c_int64_t) :: limit_ms
  end type

  interface
    subroutine c_setting_set(name, value, ierror) bind(C, name="rondo_f_setting_set")
      import :: c_int, c_char
      character(kind=c_char), intent(in) :: name(*), value(*)
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine c_force_next(algo, proto, ierror) bind(C, name="rondo_f_force_next")
      import :: c_int, c_ptr
      type(c_ptr), intent(in), value :: algo, proto
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine c_prefer_next(algo, proto, ierror) bind(C, name="rondo_f_prefer_next")
      import :: c_int, c_ptr
      type(c_ptr), intent(in), value :: algo, proto
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine c_resources_next(blocks, cta_policy, ierror) bind(C, name="rondo_f_resources_next")
      import :: c_int
      integer(c_int), intent(in), value :: blocks, cta_policy
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine c_launch_event_next(event, ierror) bind(C, name="rondo_f_launch_event_next")
      import :: c_int, c_ptr
      type(c_ptr), intent(in), value :: event
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine c_setting_get(name, text, bytes, ierror) bind(C, name="rondo_f_setting_get")
      import :: c_int, c_char, c_size_t
      character(kind=c_char), intent(in) :: name(*)
      character(kind=c_char), intent(inout) :: text(*)
      integer(c_size_t), intent(in) :: bytes
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    function c_setting_name(index) bind(C, name="rondo_setting_name") result(text)
      import :: c_int, c_ptr
      integer(c_int), value :: index
      type(c_ptr) :: text
    end function

    subroutine c_create(comm, nranks, id, rank, config, ierror) bind(C, name="rondo_f_comm_create")
      import :: c_int, rondo_comm, rondo_unique_id, config_c
      type(rondo_comm), intent(out) :: comm
      integer(c_int), intent(in) :: nranks, rank
      type(rondo_unique_id), intent(in) :: id
      type(config_c), intent(in) :: config
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine c_create_scalable(comm, nranks, ids, nids, rank, config, ierror) &
        bind(C, name="rondo_f_comm_create_scalable")
      import :: c_int, rondo_comm, rondo_unique_id, config_c
      type(rondo_comm), intent(out) :: comm
      integer(c_int), intent(in) :: nranks, nids, rank
      type(rondo_unique_id), intent(in) :: ids(*)
      type(config_c), intent(in) :: config
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine c_create_all(comms, ndevices, devices, config, ierror) bind(C, name="rondo_f_comm_create_all")
      import :: c_int, rondo_comm, config_c
      type(rondo_comm), intent(inout) :: comms(*)
      integer(c_int), intent(in) :: ndevices
      integer(c_int), intent(in), optional :: devices(*)
      type(config_c), intent(in) :: config
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine c_split(comm, color, key, newcomm, config, ierror) bind(C, name="rondo_f_comm_split")
      import :: c_int, rondo_comm, config_c
      type(rondo_comm), intent(in) :: comm
      integer(c_int), intent(in) :: color, key
      type(rondo_comm), intent(out) :: newcomm
      type(config_c), intent(in) :: config
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine c_grow(comm, nranks, id, rank, newcomm, config, ierror) bind(C, name="rondo_f_comm_grow")
      import :: c_int, rondo_comm, rondo_unique_id, config_c
      type(rondo_comm), intent(in) :: comm
      integer(c_int), intent(in) :: nranks, rank
      type(rondo_unique_id), intent(in), optional :: id
      type(rondo_comm), intent(out) :: newcomm
      type(config_c), intent(in) :: config
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine c_shrink(comm, excluded, nexcluded, newcomm, config, ierror) bind(C, name="rondo_f_comm_shrink")
      import :: c_int, rondo_comm, config_c
      type(rondo_comm), intent(in) :: comm
      integer(c_int), intent(in) :: excluded(*), nexcluded
      type(rondo_comm), intent(out) :: newcomm
      type(config_c), intent(in) :: config
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine c_request_test(request, done, ierror) bind(C, name="rondo_f_request_test")
      import :: c_int, rondo_request
      type(rondo_request), intent(inout) :: request
      integer(c_int), intent(inout) :: done
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    function c_type_size(type) bind(C, name="rondo_type_size") result(bytes)
      import :: c_int, c_size_t
      integer(c_int), value :: type
      integer(c_size_t) :: bytes
    end function

    function c_result_string(result) bind(C, name="rondo_result_string") result(text)
      import :: c_int, c_ptr
      integer(c_int), value :: result
      type(c_ptr) :: text
    end function

    function c_last_error(comm) bind(C, name="rondo_last_error") result(text)
      import :: c_ptr
      type(c_ptr), value :: comm
      type(c_ptr) :: text
    end function

    function c_explain(comm, text, bytes) bind(C, name="rondo_explain") result(ierror)
      import :: c_ptr, c_char, c_size_t, c_int
      type(c_ptr), value :: comm
      character(kind=c_char), intent(out) :: text(*)
      integer(c_size_t), value :: bytes
      integer(c_int) :: ierror
    end function

    subroutine c_status(comm, status, ierror) bind(C, name="rondo_f_comm_status")
      import :: c_int, rondo_comm, status_c
      type(rondo_comm), intent(in) :: comm
      type(status_c), intent(inout) :: status
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine c_memory(config, shape, memory, ierror) bind(C, name="rondo_f_comm_memory")
      import :: c_int, config_c, rondo_shape, rondo_memory
      type(config_c), intent(in) :: config
      type(rondo_shape), intent(in) :: shape
      type(rondo_memory), intent(inout) :: memory
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine c_memory_now(comm, memory, ierror) bind(C, name="rondo_f_comm_memory_now")
      import :: c_int, rondo_comm, rondo_memory
      type(rondo_comm), intent(in) :: comm
      type(rondo_memory), intent(inout) :: memory
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine c_dump(path, flags, ierror) bind(C, name="rondo_f_dump")
      import :: c_int, c_char
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int), intent(in) :: flags
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine c_work_query(work, info, ierror) bind(C, name="rondo_f_work_query")
      import :: c_int, rondo_work, work_info_c
      type(rondo_work), intent(in) :: work
      type(work_info_c), intent(inout) :: info
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    function c_strlen(text) bind(C, name="strlen") result(length)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function

    subroutine c_saw_address(buffer) bind(C, name="rd_f_saw_address")
      type(*), dimension(..), intent(in), target :: buffer
    end subroutine
  end interface

contains

  !> Returns the address of the text as C has it, which lies in `kept`; a null pointer if it is absent.
  function text_of(text, kept) result(at)
    character(len=*), intent(in), optional :: text
    character(kind=c_char, len=:), allocatable, target, intent(out) :: kept
    type(c_ptr) :: at

    at = c_null_ptr
    if (.not. present(text)) return
    kept = trim(text)//c_null_char
    at = c_loc(kept)
  end function

  !> Converts the config, or one with all defaults if it is absent.
  function plain(config) result(c)
    type(rondo_config), intent(in), optional :: config
    type(config_c) :: c
    type(rondo_config) :: from
    integer :: i, length

    if (present(config)) from = config
    c%device = from%device
    c%blocking = from%blocking
    c%timeout_ms = from%timeout_ms
    c%first_timeout_ms = from%first_timeout_ms
    c%stall_ms = from%stall_ms
    c%signals = from%signals
    c%contexts = from%contexts
    c%blocks = from%blocks
    c%cta_policy = from%cta_policy
    c%traffic_class = from%traffic_class
    c%blocks_least = from%blocks_least
    c%net_channels = from%net_channels
    c%nan_check = from%nan_check
    c%on_error = from%on_error
    length = len_trim(from%name)
    c%name = c_null_char
    do i = 1, length
      c%name(i) = from%name(i:i)
    end do
    length = len_trim(from%network)
    c%network = c_null_char
    do i = 1, length
      c%network(i) = from%network(i:i)
    end do
  end function

  function text_at(address) result(text)
    type(c_ptr), intent(in) :: address
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: from(:)
    integer :: i, length

    length = int(c_strlen(address))
    call c_f_pointer(address, from, [length])
    allocate (character(len=length) :: text)
    do i = 1, length
      text(i:i) = from(i)
    end do
  end function

  !> Called by C: ends the program.
  subroutine stop_with(text, length) bind(C, name="rondo_f_stop")
    integer(c_int), intent(in) :: length
    character(kind=c_char), intent(in) :: text(length)
    character(len=length) :: line
    integer :: i

    do i = 1, length
      line(i:i) = text(i)
    end do
    error stop line
  end subroutine

  !> Called by C, to find out what this compiler's descriptor tells about an address.
  subroutine pass_address() bind(C, name="rondo_f_pass_address")
    call c_saw_address(c_null_ptr)
  end subroutine
end module
