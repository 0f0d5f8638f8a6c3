dnl RONDO_FORTRAN_COMPILER, RONDO_FORTRAN: the Fortran modules, where there is a Fortran compiler that knows Fortran 2018's
dnl descriptors. Both before LT_INIT, which looks at FC; apart, because what the second uses requires that the first is
dnl expanded. Set rondo_fortran, HAVE_FORTRAN, CFI_CPPFLAGS (where the compiler's
dnl ISO_Fortran_binding.h is, if CC does not find it by itself).
AC_DEFUN([RONDO_FORTRAN_COMPILER], [
  AC_ARG_ENABLE([fortran],
    [AS_HELP_STRING([--enable-fortran@<:@=auto|yes|no@:>@],
      [the Fortran modules @<:@default: auto, if there is a compiler: FC, gfortran from 12 on@:>@])],
    [], [enable_fortran=auto])
  dnl A sanitizer's flags are for C, and its run-time library would have to be linked by the Fortran compiler.
  AS_IF([test "${enable_sanitizer:-no}" != no && test "$enable_fortran" = auto], [enable_fortran=no])
  AS_IF([test "$enable_fortran" != no], [AC_PROG_FC], [FC=])
])

AC_DEFUN([RONDO_FORTRAN], [
  rondo_fortran=no
  rondo_fortran_what="no (--enable-fortran=no)"
  CFI_CPPFLAGS=
  FC_WARN=
  AS_IF([test "$enable_fortran" != no], [
    AS_IF([test -n "$FC"], [RONDO_FORTRAN_CHECK], [rondo_fortran_what="no, no Fortran compiler found"])
    AS_IF([test $rondo_fortran = no], [
      FC=
      AS_IF([test "$enable_fortran" != auto],
        [AC_MSG_ERROR([--enable-fortran=$enable_fortran was asked for, but: $rondo_fortran_what (see config.log)])])
    ])
  ])
  AM_CONDITIONAL([HAVE_FORTRAN], [test $rondo_fortran = yes])
  AC_SUBST([CFI_CPPFLAGS])
  AC_SUBST([FC_WARN])
])

dnl What the compiler must be able to do, as the modules do it.
AC_DEFUN([RONDO_FORTRAN_CHECK], [
  AC_LANG_PUSH([Fortran])
  AC_FC_SRCEXT([f90], [], [:])
  AC_FC_PP_SRCEXT([F90], [], [:])
  AC_FC_MODULE_FLAG([], [:])
  AC_FC_MODULE_OUTPUT_FLAG([], [:])
  AC_MSG_CHECKING([whether $FC knows Fortran 2018's descriptors])
  AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
      program conftest
        use, intrinsic :: iso_c_binding
        interface operation
          subroutine one(buffer, count, ierror) bind(C, name="rondo_one")
            import :: c_int, c_int32_t
            type(*), dimension(..), intent(in), target :: buffer
            integer(c_int32_t), intent(in) :: count
            integer(c_int), intent(out), optional :: ierror
          end subroutine
        end interface
        real, target :: x(4)
        character(len=8) :: text
        text = 'stop'
        call operation(x(1:4:2), 2_c_int32_t)
        call operation(c_loc(x), 4_c_int32_t)
        error stop text
      end program
    ]])], [rondo_fortran=yes], [rondo_fortran_what="no, $FC lacks Fortran 2018's descriptors"])
  AC_MSG_RESULT([$rondo_fortran])
  AC_LANG_POP([Fortran])
  AS_IF([test $rondo_fortran = yes && test "$ac_cv_fc_compiler_gnu" = yes], [
    FC_WARN="-std=f2018 -Wall -Wextra -Wno-compare-reals -Wno-function-elimination"
    rondo_fc_version=`$FC -dumpversion | $SED 's/\..*//'`
    AS_IF([test "$rondo_fc_version" -lt 12], [
      rondo_fortran=no
      rondo_fortran_what="no, $FC is version $rondo_fc_version: its descriptors are right from version 12 on"
    ])
  ])
  AS_IF([test $rondo_fortran = yes], [RONDO_FORTRAN_HEADER])
  AS_IF([test $rondo_fortran = yes], [rondo_fortran_what="yes, $FC"])
])

dnl The header must be the Fortran compiler's own: each has its own numbers. GNU's has version 1.
AC_DEFUN([RONDO_FORTRAN_HEADER], [
  AC_MSG_CHECKING([for $FC's ISO_Fortran_binding.h])
  rondo_cfi_wanted="defined CFI_VERSION"
  AS_IF([test "$ac_cv_fc_compiler_gnu" = yes], [rondo_cfi_wanted="CFI_VERSION == 1"])
  rondo_fortran=no
  rondo_save_CPPFLAGS=$CPPFLAGS
  for CFI_CPPFLAGS in "" "-idirafter `$FC -print-file-name=include 2>/dev/null`"; do
    CPPFLAGS="$rondo_save_CPPFLAGS $CFI_CPPFLAGS"
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([
#include <ISO_Fortran_binding.h>
#if !($rondo_cfi_wanted)
#error another compiler's header
#endif
])], [rondo_fortran=yes; break])
  done
  CPPFLAGS=$rondo_save_CPPFLAGS
  AC_MSG_RESULT([$rondo_fortran])
  AS_IF([test $rondo_fortran = no],
    [rondo_fortran_what="no, $CC does not find the ISO_Fortran_binding.h of $FC: say where with CPPFLAGS=-I..."])
])

dnl RONDO_MPI_FORTRAN: whether the MPI that RONDO_MPI found has modules that FC can read; for the module rondo_mpi that is
dnl installed beside its source, and for the tests. MPIFC in the environment wins.
AC_DEFUN([RONDO_MPI_FORTRAN], [
  AC_ARG_VAR([MPIFC], [the MPI wrapper compiler for Fortran])
  rondo_mpi_fortran=no
  MPI_FCFLAGS=
  MPI_FCLIBS=
  AS_IF([test $rondo_fortran = yes && test $rondo_mpi = yes], [
    dnl mpif90.mpich goes with mpicc.mpich.
    rondo_mpifc=`AS_ECHO(["$MPICC"]) | $SED 's,.*/,,; s/mpicc/mpif90/'`
    rondo_mpi_path="`AS_DIRNAME(["$MPICC"])`$PATH_SEPARATOR$PATH"
    AS_IF([test -z "$MPIFC"], [AC_PATH_PROGS([MPIFC], [$rondo_mpifc mpifort mpif90], [], [$rondo_mpi_path])])
    AC_MSG_CHECKING([whether $FC reads the modules of $MPIFC])
    AS_IF([test -n "$MPIFC"], [
      for rondo_word in `$MPIFC -show 2>/dev/null | $SED 's/^ *@<:@^ @:>@* *//'`; do
        AS_CASE([$rondo_word],
          [-I*|-D*|-fallow-*], [MPI_FCFLAGS="$MPI_FCFLAGS $rondo_word"],
          [-L*|-l*|-Wl,-rpath*|/*.so|/*.a], [MPI_FCLIBS="$MPI_FCLIBS $rondo_word"])
      done
      AC_LANG_PUSH([Fortran])
      rondo_save_FCFLAGS=$FCFLAGS
      rondo_save_LIBS=$LIBS
      FCFLAGS="$FCFLAGS $MPI_FCFLAGS"
      LIBS="$MPI_FCLIBS $LIBS"
      AC_LINK_IFELSE([AC_LANG_SOURCE([[
          program conftest
            use mpi_f08
            call MPI_Init()
            call MPI_Finalize()
          end program
        ]])], [rondo_mpi_fortran=yes])
      FCFLAGS=$rondo_save_FCFLAGS
      LIBS=$rondo_save_LIBS
      AC_LANG_POP([Fortran])
    ])
    AC_MSG_RESULT([$rondo_mpi_fortran])
    AS_IF([test $rondo_mpi_fortran = yes],
      [rondo_fortran_what="$rondo_fortran_what, with $MPIFC"],
      [rondo_fortran_what="$rondo_fortran_what; no module for an MPI ($FC reads none)"])
  ])
  AM_CONDITIONAL([HAVE_MPI_FORTRAN], [test $rondo_mpi_fortran = yes])
  AC_SUBST([MPI_FCFLAGS])
  AC_SUBST([MPI_FCLIBS])
])
