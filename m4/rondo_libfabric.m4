dnl RONDO_LIBFABRIC: another transport between nodes, used where RONDO_TRANSPORT=ofi asks for it. Nothing is linked with
dnl LIBFABRIC_LIBS: the library loads libfabric when it needs it (lib/ofi/ofi_load.c), and looks for it in the folder of
dnl --with-libfabric=DIR first.
AC_DEFUN([RONDO_LIBFABRIC], [
  RONDO_DEPENDENCY([libfabric], [libfabric, a transport between nodes], [libfabric], [1.11], [-lfabric],
    [rdma/fi_tagged.h],
    [[struct fi_context2 c;
      (void)c;
      (void)FI_MR_ENDPOINT;
      return (int)fi_version();]])
  AS_IF([test $rondo_libfabric = yes], [AC_DEFINE([HAVE_LIBFABRIC], [1], [the transport over libfabric is built])])
  AM_CONDITIONAL([HAVE_LIBFABRIC], [test $rondo_libfabric = yes])
])
