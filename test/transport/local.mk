check_PROGRAMS += \
	test/transport/announce \
	test/transport/first_failure \
	test/transport/keeper \
	test/transport/lengths \
	test/transport/letters \
	test/transport/lines \
	test/transport/liveness \
	test/transport/lost_connection \
	test/transport/meeting \
	test/transport/news_behind
test_transport_first_failure_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
# Their first calls are interrupted there.
test_transport_keeper_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=recv -Wl,--wrap=sendmsg
test_transport_lengths_LDADD = libtest.la
test_transport_letters_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_transport_liveness_SOURCES = test/transport/liveness.c test/transport/silent_ops.h
# Which connections are lifelines is known where they are handed to the keeper.
test_transport_lost_connection_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rd_keeper_hold
test_transport_lost_connection_SOURCES = test/transport/lost_connection.c test/transport/silent_ops.h
test_transport_meeting_SOURCES = test/transport/meeting.c test/transport/silent_ops.h
test_transport_news_behind_LDADD = libtest.la

if HAVE_UCX
check_PROGRAMS += \
	test/transport/nodes \
	test/transport/nodes_link \
	test/transport/nodes_zcopy
endif
test_transport_nodes_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_transport_nodes_zcopy_LDADD = libtest.la
test_transport_nodes_link_LDADD = libtest.la
test_transport_nodes_link_SOURCES = test/transport/nodes_link.c test/util/enter.h test/util/hosts.c test/util/hosts.h

# The same programs by a transport that lives here alone; they link the core, where it is registered.
check_PROGRAMS += \
	test/transport/socketpair_nodes \
	test/transport/socketpair_zcopy
# test/transport/socketpair.sh runs it: without --nodes it would go the same way as test/fault/trials.
EXTRA_PROGRAMS += test/transport/socketpair_trials
check_DATA += test/transport/socketpair_trials$(EXEEXT)
CLEANFILES += test/transport/socketpair_trials$(EXEEXT)
operations_by_socketpair = \
	test/transport/socketpair.h \
	test/transport/socketpair_transport.c \
	test/transport/socketpair_wireup.c
test_transport_socketpair_nodes_SOURCES = test/transport/nodes.c $(operations_by_socketpair)
test_transport_socketpair_nodes_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_transport_socketpair_zcopy_SOURCES = test/transport/nodes_zcopy.c $(operations_by_socketpair)
test_transport_socketpair_zcopy_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_transport_socketpair_trials_SOURCES = \
	test/fault/judge.c \
	test/fault/limits.c \
	test/fault/plan.c \
	test/fault/plan.h \
	test/fault/recover.c \
	test/fault/steps.c \
	test/fault/trial.c \
	test/fault/trial.h \
	test/fault/trials.c \
	$(operations_by_socketpair)
test_transport_socketpair_trials_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_transport_socketpair_trials_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rd_log

script_tests += \
	test/transport/nodes_fault.sh \
	test/transport/perf.sh \
	test/transport/socketpair.sh
