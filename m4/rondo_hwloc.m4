dnl RONDO_HWLOC: cores, NUMA nodes and caches. Without it rondo reads what it needs from /sys.
AC_DEFUN([RONDO_HWLOC], [
  RONDO_DEPENDENCY([hwloc], [hwloc, for cores, NUMA nodes and caches], [hwloc], [2.0], [-lhwloc],
    [hwloc.h],
    [[hwloc_topology_t t;
      char version_2_or_later[HWLOC_API_VERSION >= 0x20000 ? 1 : -1];
      return hwloc_topology_init(&t) + (int)sizeof version_2_or_later;]])
  AS_IF([test $rondo_hwloc = yes], [AC_DEFINE([HAVE_HWLOC], [1], [hwloc 2 is linked])])
  AM_CONDITIONAL([HAVE_HWLOC], [test $rondo_hwloc = yes])
])
