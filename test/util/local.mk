# What the tests of operations share: ranks without mpirun, the reference, operations as data. They see what a user sees.
check_LTLIBRARIES += libtest.la libtest_parts.la
libtest_parts_la_SOURCES = \
	test/util/enter.h \
	test/util/harness.c \
	test/util/harness.h \
	test/util/harness_comm.c \
	test/util/integer_op.h \
	test/util/messages.c \
	test/util/messages.h \
	test/util/narrow.c \
	test/util/narrow.h \
	test/util/narrow_calls.c \
	test/util/narrow_calls.h \
	test/util/operation.c \
	test/util/operation.h \
	test/util/reference.c \
	test/util/reference.h \
	test/util/runs.c \
	test/util/runs.h
libtest_la_SOURCES =
libtest_la_LIBADD = libtest_parts.la librondo.la -lm

check_PROGRAMS += test/util/counts
test_util_counts_SOURCES = test/util/counts.c test/util/counts_other.c
test_util_counts_LDADD =

EXTRA_DIST += \
	test/util/bare_child.h \
	test/util/check.h \
	test/util/comma.h \
	test/util/found.h \
	test/util/gate.h \
	test/util/gives_way.c \
	test/util/mpirun.sh \
	test/util/start_with.h \
	test/util/text.h
