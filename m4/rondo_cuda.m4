dnl RONDO_CUDA: the CUDA toolkit (nvcc, headers, the static runtime), for the executor on GPUs. Nothing of CUDA is needed
dnl to run what was built with it: the driver is looked for when a communicator is made.
AC_DEFUN([RONDO_CUDA], [
  AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda=DIR|no], [the CUDA toolkit, for GPUs @<:@default: used if it is there@:>@])],
    [AS_IF([test "x$with_cuda" = x], [with_cuda=yes])], [with_cuda=auto])
  AC_ARG_WITH([cuda-arch],
    [AS_HELP_STRING([--with-cuda-arch=LIST], [GPU architectures to build kernels for, as 80,90; the last one is also
                     what later GPUs start from @<:@default: 90@:>@])],
    [], [with_cuda_arch=90])
  AC_ARG_VAR([NVCC], [the CUDA compiler])
  rondo_cuda=no
  CUDA_CFLAGS=
  CUDA_LIBS=
  NVCC_ARCH=
  rondo_cuda_what="no (--with-cuda=no)"
  AS_IF([test "$with_cuda" != no], [
    rondo_cuda_path="$PATH$PATH_SEPARATOR/usr/local/cuda/bin"
    AS_CASE([$with_cuda], [yes|auto], [], [rondo_cuda_path="$with_cuda/bin"])
    AC_PATH_PROGS([NVCC], [nvcc], [], [$rondo_cuda_path])
    rondo_cuda_what="no, nvcc was not found"
    AS_IF([test -n "$NVCC"], [
      rondo_cuda_dir=`AS_DIRNAME(["$NVCC"])`/..
      CUDA_CFLAGS="-isystem $rondo_cuda_dir/include"
      CUDA_LIBS="-L$rondo_cuda_dir/lib64 -lcudart_static -ldl -lrt -lpthread"
      AC_MSG_CHECKING([for the static CUDA runtime])
      rondo_save_CPPFLAGS=$CPPFLAGS
      rondo_save_LIBS=$LIBS
      CPPFLAGS="$CPPFLAGS $CUDA_CFLAGS"
      LIBS="$CUDA_LIBS $LIBS"
      AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <cuda_runtime_api.h>
        #if CUDART_VERSION < 12030
        #error too old
        #endif]], [[int n; return (int)cudaGetDeviceCount(&n) + (int)cudaLaunchKernelExC(0, 0, 0);]])],
        [rondo_cuda=yes])
      CPPFLAGS=$rondo_save_CPPFLAGS
      LIBS=$rondo_save_LIBS
      AC_MSG_RESULT([$rondo_cuda])
      rondo_cuda_what="no, beside $NVCC there is no CUDA 12.3 or later to link"
    ])
    AS_IF([test $rondo_cuda = yes], [
      rondo_cuda_what="$NVCC, sm_$with_cuda_arch"
      for rondo_arch in `echo "$with_cuda_arch" | tr , ' '`; do
        NVCC_ARCH="$NVCC_ARCH -gencode arch=compute_$rondo_arch,code=sm_$rondo_arch"
      done
      NVCC_ARCH="$NVCC_ARCH -gencode arch=compute_$rondo_arch,code=compute_$rondo_arch"
      AC_DEFINE_UNQUOTED([RONDO_NVCC], ["$NVCC"], [the CUDA compiler that configure found])
    ], [
      CUDA_CFLAGS=
      CUDA_LIBS=
      AS_IF([test "$with_cuda" != auto], [AC_MSG_ERROR([--with-cuda=$with_cuda was asked for, but $rondo_cuda_what])])
    ])
  ])
  dnl Whoever loads the library with dlopen has little room for thread variables of the quick kind, and the static
  dnl runtime brings a page of its own: with it, all of them are found the slower way.
  TLS_CFLAGS=-ftls-model=initial-exec
  AS_IF([test $rondo_cuda = yes], [TLS_CFLAGS=])
  AC_SUBST([TLS_CFLAGS])
  AC_SUBST([CUDA_CFLAGS])
  AC_SUBST([CUDA_LIBS])
  AC_SUBST([NVCC_ARCH])
  AM_CONDITIONAL([HAVE_CUDA], [test $rondo_cuda = yes])
])
