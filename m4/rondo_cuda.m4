dnl RONDO_CUDA: where the CUDA toolkit is. This version has no CUDA executor, so the answer is only recorded; asking for
dnl a toolkit that is not there is an error all the same.
AC_DEFUN([RONDO_CUDA], [
  AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda=DIR|no], [the CUDA toolkit; this version records it only @<:@default: auto@:>@])],
    [AS_IF([test "x$with_cuda" = x], [with_cuda=yes])], [with_cuda=auto])
  AC_ARG_VAR([NVCC], [the CUDA compiler])
  rondo_cuda_what="no (--with-cuda=no)"
  AS_IF([test "$with_cuda" != no], [
    rondo_cuda_path="$PATH$PATH_SEPARATOR/usr/local/cuda/bin"
    AS_CASE([$with_cuda], [yes|auto], [], [rondo_cuda_path="$with_cuda/bin"])
    AC_PATH_PROGS([NVCC], [nvcc], [], [$rondo_cuda_path])
    AS_IF([test -n "$NVCC"], [
      AC_DEFINE_UNQUOTED([RONDO_NVCC], ["$NVCC"], [the CUDA compiler that configure found])
      rondo_cuda_what="$NVCC, not used: the CUDA executor is not part of this version"
    ], [
      rondo_cuda_what="no, not found; the CUDA executor is not part of this version"
      AS_IF([test "$with_cuda" != auto],
        [AC_MSG_ERROR([--with-cuda=$with_cuda was asked for, but no nvcc was found])])
    ])
  ])
])
