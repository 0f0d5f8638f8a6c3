dnl RONDO_WARNINGS: what the tree is clean under. --enable-werror makes them errors (the project's own checks do).
AC_DEFUN([RONDO_WARNINGS], [
  AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [make compiler warnings errors])], [], [enable_werror=no])
  WARN_CFLAGS="-Wall -Wextra"
  AS_IF([test "$enable_werror" = yes], [WARN_CFLAGS="$WARN_CFLAGS -Werror"])
  AC_SUBST([WARN_CFLAGS])
])

dnl RONDO_VERSION_SCRIPT: whether the linker takes one; it keeps everything but rondo_* inside.
AC_DEFUN([RONDO_VERSION_SCRIPT], [
  AC_CACHE_CHECK([whether the linker takes a version script], [rondo_cv_version_script], [
    rondo_save_LDFLAGS=$LDFLAGS
    LDFLAGS="$LDFLAGS -Wl,--version-script=$srcdir/lib/rondo.map"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [rondo_cv_version_script=yes], [rondo_cv_version_script=no])
    LDFLAGS=$rondo_save_LDFLAGS
  ])
  AM_CONDITIONAL([HAVE_VERSION_SCRIPT], [test $rondo_cv_version_script = yes])
])

dnl RONDO_LINK_DEFS: a symbol that no library has fails the build and not the program. A library of a sanitizer's build
dnl is an exception: the program brings the sanitizer.
AC_DEFUN([RONDO_LINK_DEFS], [
  AC_CACHE_CHECK([whether the linker refuses undefined symbols], [rondo_cv_link_defs], [
    rondo_save_LDFLAGS=$LDFLAGS
    LDFLAGS="$LDFLAGS -Wl,-z,defs"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [rondo_cv_link_defs=yes], [rondo_cv_link_defs=no])
    LDFLAGS=$rondo_save_LDFLAGS
  ])
  LINK_DEFS=
  AS_IF([test $rondo_cv_link_defs = yes && test "$enable_sanitizer" = no], [LINK_DEFS=-Wl,-z,defs])
  AC_SUBST([LINK_DEFS])
])
