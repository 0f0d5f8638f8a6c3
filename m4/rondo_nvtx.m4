dnl RONDO_NVTX: the headers of NVTX 3, for ranges that Nsight Systems and other tools show. They come with CUDA, but need
dnl nothing else of it, so they are looked for without CUDA, too.
AC_DEFUN([RONDO_NVTX], [
  AC_ARG_WITH([nvtx],
    [AS_HELP_STRING([--with-nvtx=DIR|no], [NVTX 3, whose headers are in DIR/include/nvtx3 @<:@default: used if they are
                     there or beside CUDA's@:>@])],
    [AS_IF([test "x$with_nvtx" = x], [with_nvtx=yes])], [with_nvtx=auto])
  rondo_nvtx=no
  NVTX_CFLAGS=
  rondo_nvtx_what="no (--with-nvtx=no)"
  AS_IF([test "$with_nvtx" != no], [
    AC_MSG_CHECKING([for NVTX 3 with payloads])
    AS_CASE([$with_nvtx], [yes|auto], [
      rondo_nvtx_places="none $rondo_cuda_dir/include /usr/local/cuda/include"
      AS_CASE([$with_cuda], [yes|no|auto], [], [rondo_nvtx_places="$with_cuda/include $rondo_nvtx_places"])
    ], [rondo_nvtx_places=$with_nvtx/include])
    rondo_save_CPPFLAGS=$CPPFLAGS
    for rondo_place in $rondo_nvtx_places; do
      AS_IF([test $rondo_nvtx = no], [
        NVTX_CFLAGS="-isystem $rondo_place"
        AS_IF([test $rondo_place = none], [NVTX_CFLAGS=])
        CPPFLAGS="$rondo_save_CPPFLAGS $NVTX_CFLAGS"
        AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <nvtx3/nvToolsExt.h>
          #include <nvtx3/nvToolsExtPayload.h>]],
          [[nvtxPayloadSchemaAttr_t a = {.payloadStaticSize = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START};
            return (int)a.payloadStaticSize + (nvtxDomainCreateA("rondo") != 0);]])],
          [rondo_nvtx=yes])
      ])
    done
    CPPFLAGS=$rondo_save_CPPFLAGS
    AC_MSG_RESULT([$rondo_nvtx])
    rondo_nvtx_what="yes $NVTX_CFLAGS"
    AS_IF([test $rondo_nvtx = no], [
      NVTX_CFLAGS=
      rondo_nvtx_what="no, nvtx3/nvToolsExtPayload.h was not found"
      AS_IF([test "$with_nvtx" != auto], [AC_MSG_ERROR([--with-nvtx=$with_nvtx was asked for, but $rondo_nvtx_what])])
    ])
  ])
  AC_SUBST([NVTX_CFLAGS])
  AM_CONDITIONAL([HAVE_NVTX], [test $rondo_nvtx = yes])
])
