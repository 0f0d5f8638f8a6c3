dnl RONDO_EXPAT: NCCL's files of topologies and graphs. Without it rondo does not read them.
AC_DEFUN([RONDO_EXPAT], [
  RONDO_DEPENDENCY([expat], [expat, to read NCCL's files of topologies], [expat], [2.1], [-lexpat],
    [expat.h], [[return XML_ParserCreate(0) == 0;]])
  AM_CONDITIONAL([HAVE_EXPAT], [test $rondo_expat = yes])
])
