dnl RONDO_MPI: an MPI for rondo-perf, the tests and nothing else: librondo itself links none.
dnl
dnl What the wrapper compiler would add is read from `mpicc -show`, which Open MPI, MPICH and their descendants all
dnl have, so the whole tree is built by one compiler. MPICC and MPIEXEC in the environment win.
AC_DEFUN([RONDO_MPI], [
  AC_ARG_WITH([mpi],
    [AS_HELP_STRING([--with-mpi=DIR|no], [an MPI, for rondo-perf and the tests @<:@default: used if it is there@:>@])],
    [AS_IF([test "x$with_mpi" = x], [with_mpi=yes])], [with_mpi=auto])
  AC_ARG_VAR([MPICC], [the MPI wrapper compiler for C])
  AC_ARG_VAR([MPIEXEC], [what starts MPI programs])
  rondo_mpi=no
  rondo_mpi_what="no (--with-mpi=no): rondo-perf starts its ranks itself"
  MPI_CFLAGS=
  MPI_LIBS=
  AS_IF([test "$with_mpi" != no], [
    rondo_mpi_path=$PATH
    AS_CASE([$with_mpi], [yes|auto], [], [rondo_mpi_path="$with_mpi/bin"])
    AS_IF([test -z "$MPICC"], [AC_PATH_PROGS([MPICC], [mpicc], [], [$rondo_mpi_path])])
    dnl mpicc.mpich goes with mpirun.mpich.
    rondo_mpirun=`AS_ECHO(["$MPICC"]) | $SED 's,.*/,,; s/mpicc/mpirun/'`
    AS_IF([test -z "$MPIEXEC"], [AC_PATH_PROGS([MPIEXEC], [$rondo_mpirun mpirun mpiexec], [], [$rondo_mpi_path])])
    AC_MSG_CHECKING([for MPI])
    AS_IF([test -n "$MPICC" && test -n "$MPIEXEC"], [
      for rondo_word in `$MPICC -show 2>/dev/null | $SED 's/^ *@<:@^ @:>@* *//'`; do
        AS_CASE([$rondo_word],
          [-I*|-D*], [MPI_CFLAGS="$MPI_CFLAGS $rondo_word"],
          [-L*|-l*|-Wl,-rpath*|/*.so|/*.a], [MPI_LIBS="$MPI_LIBS $rondo_word"])
      done
      rondo_save_CPPFLAGS=$CPPFLAGS
      rondo_save_LIBS=$LIBS
      CPPFLAGS="$CPPFLAGS $MPI_CFLAGS"
      LIBS="$MPI_LIBS $LIBS"
      AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]], [[return MPI_Init(0, 0) + MPI_Finalize();]])],
        [rondo_mpi=yes])
      CPPFLAGS=$rondo_save_CPPFLAGS
      LIBS=$rondo_save_LIBS
    ])
    AC_MSG_RESULT([$rondo_mpi])
    rondo_mpi_what="yes, $MPICC, $MPIEXEC"
    AS_IF([test $rondo_mpi = no], [
      MPI_CFLAGS=
      MPI_LIBS=
      rondo_mpi_what="no, not found: rondo-perf starts its ranks itself"
      AS_IF([test "$with_mpi" != auto], [
        AC_MSG_ERROR([--with-mpi=$with_mpi was asked for, but no usable mpicc and mpirun were found: see config.log])
      ])
    ])
  ])
  AS_IF([test $rondo_mpi = yes], [AC_DEFINE([HAVE_MPI], [1], [rondo-perf and the tests are built with an MPI])])
  AM_CONDITIONAL([HAVE_MPI], [test $rondo_mpi = yes])
  AC_SUBST([MPI_CFLAGS])
  AC_SUBST([MPI_LIBS])
])
