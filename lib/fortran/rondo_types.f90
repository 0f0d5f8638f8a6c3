!> The types and the constants of rondo.h, with the same names and values, which the modules of rondo for Fortran share.
!> Programs use module rondo, which exports all of this.
!>
!> Each handle is the C handle in a type of its own: a program that is partly C passes comm%handle to C.
module rondo_types
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_int8_t, c_int32_t, c_int64_t, c_size_t, c_ptr, c_null_ptr
  use, intrinsic :: iso_fortran_env, only: int64
  implicit none
  private
  public :: rondo_comm, rondo_config, rondo_memory, rondo_shape, rondo_status, rondo_unique_id, rondo_registration, rondo_request
  public :: rondo_window, rondo_wait_desc
  public :: rondo_device, rondo_device_config, rondo_device_view
  public :: rondo_work, rondo_work_info, rondo_event

  !> rondo_comm_t: a communicator.
  type, bind(C) :: rondo_comm
    type(c_ptr) :: handle = c_null_ptr
  end type

  !> rondo_request_t: made by rondo_group_submit. A new one is complete.
  type, bind(C) :: rondo_request
    type(c_ptr) :: handle = c_null_ptr
  end type

  !> rondo_registration_t
  type, bind(C) :: rondo_registration
    type(c_ptr) :: handle = c_null_ptr
  end type

  !> rondo_window_t
  type, bind(C) :: rondo_window
    type(c_ptr) :: handle = c_null_ptr
  end type

  !> rondo_wait_desc_t: `count` signals from rank `peer`, with the number `signal` in `context`.
  type, bind(C) :: rondo_wait_desc
    integer(c_int) :: count = 1, peer = 0, signal = 0, context = 0
  end type

  integer(c_int), parameter, public :: RONDO_PEER_ALL = -1

  integer(c_int), parameter, public :: RONDO_DEVICE_RANKS = 16

  !> rondo_device_config_t: a new one has all defaults.
  type, bind(C) :: rondo_device_config
    integer(c_int) :: barriers = -1, signals = -1
  end type

  !> rondo_device_t, which kernels in CUDA C++ take by value: see rondo_device.cuh.
  type, bind(C) :: rondo_device
    integer(c_size_t) :: size = 0_c_size_t !< rondo_device_create sets it
    integer(c_int32_t) :: rank = 0, nranks = 0, barriers = 0, signals = 0
    type(c_ptr) :: area(RONDO_DEVICE_RANKS) = c_null_ptr
    type(c_ptr) :: own = c_null_ptr, host = c_null_ptr, made = c_null_ptr
  end type

  !> rondo_device_window_t, by another name, because a call has that one.
  type, bind(C) :: rondo_device_view
    integer(c_size_t) :: size = 0_c_size_t !< rondo_device_window sets it
    type(c_ptr) :: base(RONDO_DEVICE_RANKS) = c_null_ptr
    integer(c_size_t) :: bytes(RONDO_DEVICE_RANKS) = 0_c_size_t
  end type

  !> rondo_unique_id_t: the address of the rendezvous, and the secret by which the ranks authenticate each other.
  type, bind(C) :: rondo_unique_id
    integer(c_int8_t) :: bytes(128) = 0_c_int8_t
  end type

  integer(c_int), parameter, public :: RONDO_DEVICE_AUTO = -2
  integer(c_int), parameter, public :: RONDO_DEVICE_HOST = -1
  integer(c_int), parameter, public :: RONDO_SURVIVORS = -1

  !> rondo_config_t: a new one has all defaults, as RONDO_CONFIG_INIT in C. Unlike in C it has no size, because the
  !> linked library knows this type.
  type :: rondo_config
    integer(c_int) :: device = RONDO_DEVICE_AUTO
    integer(c_int) :: blocking = 1
    character(len=63) :: name = ''         !< printed in every message of the communicator; blank: a number
    integer(int64) :: timeout_ms = -1_int64
    integer(c_int) :: on_error = -1        !< RONDO_ON_ERROR_*
    integer(int64) :: first_timeout_ms = -1_int64
    integer(int64) :: stall_ms = -1_int64
    integer(c_int) :: signals = -1, contexts = -1 !< for one-sided operations
    integer(c_int) :: blocks = -1          !< multiprocessors that a launch may take
    character(len=63) :: network = ''      !< UCX's transports between nodes; blank: RONDO_UCX_TLS
    integer(c_int) :: cta_policy = -1      !< RONDO_CTA_POLICY_*
    integer(c_int) :: traffic_class = -1   !< of packets between nodes
    integer(c_int) :: blocks_least = -1    !< multiprocessors that a launch takes at least
    integer(c_int) :: net_channels = -1    !< proxy channels of a rank: RONDO_PROXY_THREADS
    integer(c_int) :: nan_check = -1       !< RONDO_NAN_*
  end type

  integer(c_int), parameter, public :: RONDO_ON_ERROR_RETURN = 0
  integer(c_int), parameter, public :: RONDO_ON_ERROR_EXIT = 1
  integer(c_int), parameter, public :: RONDO_ON_ERROR_REVOKE_ALL = 2
  integer(c_int), parameter, public :: RONDO_ON_ERROR_REPORT = 3
  integer(c_int), parameter, public :: RONDO_ON_ERROR_REVOKE_EXIT = 4

  integer(c_int), parameter, public :: RONDO_NAN_IGNORE = 0
  integer(c_int), parameter, public :: RONDO_NAN_WARN = 1
  integer(c_int), parameter, public :: RONDO_NAN_FAIL = 2

  integer(c_int), parameter, public :: RONDO_CTA_POLICY_DEFAULT = 0
  integer(c_int), parameter, public :: RONDO_CTA_POLICY_EFFICIENCY = 1
  integer(c_int), parameter, public :: RONDO_CTA_POLICY_ZERO = 2

  !> rondo_shape_t: a new one is as RONDO_SHAPE_INIT in C. It has no size, for the reason that rondo_config has none.
  type, bind(C) :: rondo_shape
    integer(c_int) :: nranks = 1, nnodes = 1, most = 0, local = 0, cores = 0, p2p = -1
  end type

  !> rondo_memory_t: bytes.
  type, bind(C) :: rondo_memory
    integer(c_int64_t) :: device = 0_c_int64_t, pinned = 0_c_int64_t, shared = 0_c_int64_t, network = 0_c_int64_t
    integer(c_int64_t) :: suspend = 0_c_int64_t, suspended = 0_c_int64_t
  end type

  !> rondo_status_t, as rondo_comm_status fills it.
  type :: rondo_status
    integer(int64) :: collectives = 0, collectives_ended = 0, sends = 0, sends_ended = 0, recvs = 0, recvs_ended = 0
    integer(int64) :: bytes = 0, waits_ms = 0
    integer(c_int) :: waits_for = -1
    character(len=160) :: call = ''
  end type

  integer(c_int), parameter, public :: RONDO_HOOK_FAILED = 0
  integer(c_int), parameter, public :: RONDO_HOOK_STALLED = 1
  integer(c_int), parameter, public :: RONDO_HOOK_DUMPED = 2
  integer(c_int), parameter, public :: RONDO_HOOK_COMM_MADE = 3
  integer(c_int), parameter, public :: RONDO_HOOK_COMM_ENDED = 4
  integer(c_int), parameter, public :: RONDO_HOOK_COMPLETED = 5
  integer(c_int), parameter, public :: RONDO_NUM_HOOKS = 6

  !> rondo_event_t, which a hook gets: a bind(C) subroutine of this type and a type(c_ptr), value.
  type, bind(C) :: rondo_event
    integer(c_size_t) :: size = 0
    integer(c_int) :: kind = 0, result = 0, rank = -1, nranks = 0
    character(kind=c_char) :: comm(64), text(512)
  end type

  integer(c_int), parameter, public :: RONDO_DUMP_NODE = 1
  integer(c_int), parameter, public :: RONDO_DUMP_RECORD = 0
  integer(c_int), parameter, public :: RONDO_DUMP_JSON = 1

  !> rondo_work_t: a call. A new one is of none.
  type, bind(C) :: rondo_work
    integer(c_int64_t) :: words(2) = 0_c_int64_t
  end type

  integer(c_int), parameter, public :: RONDO_WORK_UNKNOWN = 0
  integer(c_int), parameter, public :: RONDO_WORK_ENQUEUED = 1
  integer(c_int), parameter, public :: RONDO_WORK_STARTED = 2
  integer(c_int), parameter, public :: RONDO_WORK_COMPLETED = 3
  integer(c_int), parameter, public :: RONDO_WORK_FAILED = 4

  !> rondo_work_info_t, as rondo_work_query fills it.
  type :: rondo_work_info
    integer(c_int) :: state = 0, result = 0
    integer(int64) :: number = 0, count = 0, bytes = 0, tag = 0, begun_ns = 0, ended_ns = 0
    integer(c_int) :: waits_for = -1
    integer(int64) :: waits_ms = 0, step = -1, steps = -1
    character(len=160) :: call = ''
    character(len=32) :: algo = ''
    character(len=16) :: proto = ''
    integer(int64) :: limit_ms = 0
  end type

  ! rondo_result_t: the values of ierror.
  integer(c_int), parameter, public :: RONDO_SUCCESS = 0
  integer(c_int), parameter, public :: RONDO_IN_PROGRESS = 1
  integer(c_int), parameter, public :: RONDO_ERR_INVALID_ARGUMENT = 2
  integer(c_int), parameter, public :: RONDO_ERR_INVALID_USAGE = 3
  integer(c_int), parameter, public :: RONDO_ERR_UNSUPPORTED = 4
  integer(c_int), parameter, public :: RONDO_ERR_NO_MEMORY = 5
  integer(c_int), parameter, public :: RONDO_ERR_SYSTEM = 6
  integer(c_int), parameter, public :: RONDO_ERR_CUDA = 7
  integer(c_int), parameter, public :: RONDO_ERR_INTERNAL = 8
  integer(c_int), parameter, public :: RONDO_ERR_REMOTE = 9
  integer(c_int), parameter, public :: RONDO_ERR_TIMEOUT = 10
  integer(c_int), parameter, public :: RONDO_ERR_ABORTED = 11
  integer(c_int), parameter, public :: RONDO_ERR_MISMATCH = 12
  integer(c_int), parameter, public :: RONDO_ERR_NAN = 13

  ! rondo_type_t. A default real is RONDO_FLOAT32, a double precision RONDO_FLOAT64, a default integer RONDO_INT32, a
  ! default complex RONDO_COMPLEX64. The pairs are sequences of a value and an index. Those of two reals are the ones
  ! that Fortran programs use for MINLOC without a type of their own.
  integer(c_int), parameter, public :: RONDO_INT8 = 0
  integer(c_int), parameter, public :: RONDO_UINT8 = 1
  integer(c_int), parameter, public :: RONDO_INT16 = 2
  integer(c_int), parameter, public :: RONDO_UINT16 = 3
  integer(c_int), parameter, public :: RONDO_INT32 = 4
  integer(c_int), parameter, public :: RONDO_UINT32 = 5
  integer(c_int), parameter, public :: RONDO_INT64 = 6
  integer(c_int), parameter, public :: RONDO_UINT64 = 7
  integer(c_int), parameter, public :: RONDO_FLOAT16 = 8
  integer(c_int), parameter, public :: RONDO_BFLOAT16 = 9
  integer(c_int), parameter, public :: RONDO_FLOAT32 = 10
  integer(c_int), parameter, public :: RONDO_FLOAT64 = 11
  integer(c_int), parameter, public :: RONDO_FLOAT8_E4M3 = 12
  integer(c_int), parameter, public :: RONDO_FLOAT8_E5M2 = 13
  integer(c_int), parameter, public :: RONDO_COMPLEX64 = 14
  integer(c_int), parameter, public :: RONDO_COMPLEX128 = 15
  integer(c_int), parameter, public :: RONDO_BOOL = 16                !< logical(c_bool), one byte
  integer(c_int), parameter, public :: RONDO_FLOAT32_INT32 = 17
  integer(c_int), parameter, public :: RONDO_FLOAT64_INT32 = 18
  integer(c_int), parameter, public :: RONDO_INT32_INT32 = 19
  integer(c_int), parameter, public :: RONDO_INT64_INT32 = 20
  integer(c_int), parameter, public :: RONDO_FLOAT32_FLOAT32 = 21     !< 2REAL
  integer(c_int), parameter, public :: RONDO_FLOAT64_FLOAT64 = 22     !< 2DOUBLE PRECISION
  integer(c_int), parameter, public :: RONDO_NUM_TYPES = 23

  ! rondo_op_t
  integer(c_int), parameter, public :: RONDO_SUM = 0
  integer(c_int), parameter, public :: RONDO_PROD = 1
  integer(c_int), parameter, public :: RONDO_MIN = 2
  integer(c_int), parameter, public :: RONDO_MAX = 3
  integer(c_int), parameter, public :: RONDO_AVG = 4
  integer(c_int), parameter, public :: RONDO_BAND = 5
  integer(c_int), parameter, public :: RONDO_BOR = 6
  integer(c_int), parameter, public :: RONDO_BXOR = 7
  integer(c_int), parameter, public :: RONDO_LAND = 8
  integer(c_int), parameter, public :: RONDO_LOR = 9
  integer(c_int), parameter, public :: RONDO_LXOR = 10
  integer(c_int), parameter, public :: RONDO_MINLOC = 11
  integer(c_int), parameter, public :: RONDO_MAXLOC = 12
  integer(c_int), parameter, public :: RONDO_NUM_OPS = 13
end module
