dnl RONDO_FIBERS: can the C++ compiler's thread sanitizer be told of threads that switch stacks by hand? For test/sim.
AC_DEFUN([RONDO_FIBERS], [
  AM_COND_IF([HAVE_CXX], [
    AC_LANG_PUSH([C++])
    AC_CACHE_CHECK([whether the thread sanitizer of $CXX knows fibers], [rondo_cv_fibers], [
      rondo_save_CXXFLAGS=$CXXFLAGS
      CXXFLAGS="$CXXFLAGS -fsanitize=thread"
      AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <sanitizer/tsan_interface.h>]],
        [[__tsan_switch_to_fiber(__tsan_create_fiber(0), __tsan_switch_to_fiber_no_sync);]])],
        [rondo_cv_fibers=yes], [rondo_cv_fibers=no])
      CXXFLAGS=$rondo_save_CXXFLAGS
    ])
    AC_LANG_POP([C++])
  ])
  AM_CONDITIONAL([HAVE_FIBERS], [test "${rondo_cv_fibers:-no}" = yes])
])
