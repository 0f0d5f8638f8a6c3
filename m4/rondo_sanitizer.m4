dnl RONDO_SANITIZER: --enable-sanitizer=LIST builds everything, tests included, with the compiler's sanitizers; what
dnl they report ends the program, so that a test fails. `make check` then runs the test programs and sees whether faults
dnl planted on purpose are found. Configure it --with-mpi=no: MPIs leak.
dnl Nothing is suppressed. For the thread sanitizer RD_THREAD_SANITIZER chooses, where the library has one, the way that
dnl the language defines instead of the one that the processor promises; fences it cannot follow, which is no news.
AC_DEFUN([RONDO_SANITIZER], [
  AC_ARG_ENABLE([sanitizer],
    [AS_HELP_STRING([--enable-sanitizer=LIST], [build with sanitizers: address,undefined or thread (default: none)])],
    [], [enable_sanitizer=no])
  SANITIZER_CFLAGS=
  AS_CASE([$enable_sanitizer],
    [no], [],
    [yes], [AC_MSG_ERROR([--enable-sanitizer wants a list: address,undefined or thread])],
    [rondo_save_CFLAGS=$CFLAGS
     SANITIZER_CFLAGS="-fsanitize=$enable_sanitizer -fno-sanitize-recover=all -fno-omit-frame-pointer"
     AS_CASE([,$enable_sanitizer,], [*,thread,*],
       [SANITIZER_CFLAGS="$SANITIZER_CFLAGS -DRD_THREAD_SANITIZER -Wno-unknown-warning-option -Wno-tsan"])
     CFLAGS="$CFLAGS $SANITIZER_CFLAGS"
     AC_MSG_CHECKING([whether $CC has the sanitizers $enable_sanitizer])
     AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [AC_MSG_RESULT([yes])],
       [AC_MSG_RESULT([no])
        AC_MSG_ERROR([$CC cannot link with -fsanitize=$enable_sanitizer: install its runtime (in Debian it comes with gcc; for clang libclang-rt-dev)])])
     CFLAGS=$rondo_save_CFLAGS])
  AC_SUBST([SANITIZER_CFLAGS])
  AC_SUBST([SANITIZER], [$enable_sanitizer])
  AM_CONDITIONAL([SANITIZING], [test "$enable_sanitizer" != no])
  AM_CONDITIONAL([SANITIZING_THREADS], [AS_CASE([,$enable_sanitizer,], [*,thread,*], [:], [false])])
])
