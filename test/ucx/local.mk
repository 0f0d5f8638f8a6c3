# The network between ranks without executor or communicator, and strangers at its doors; net_refuse sees UCX's own types.
network_tests = \
	test/fault/hostile
if HAVE_UCX
network_tests += \
	test/ucx/changed_root \
	test/ucx/choose \
	test/ucx/family \
	test/ucx/fpenv \
	test/ucx/greeting_lost \
	test/ucx/half_connect \
	test/ucx/little_memory \
	test/ucx/net \
	test/ucx/missing \
	test/ucx/quiet \
	test/ucx/rkey \
	test/ucx/refuse \
	test/ucx/thread_limit \
	test/ucx/wireup_late \
	test/ucx/start \
	test/ucx/versions
endif
check_PROGRAMS += $(network_tests)
# Where host memory stands in for a device's.
if HAVE_UCX
played_get = \
	test/util/played_get.c \
	test/util/played_get.h
net_rank = \
	test/util/net_rank.c \
	test/util/net_rank.h
endif
test_ucx_net_SOURCES = test/ucx/net.c $(net_rank) $(played_get)
test_ucx_net_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
test_ucx_rkey_SOURCES = test/ucx/rkey.c $(played_get)
test_ucx_rkey_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
test_ucx_wireup_late_SOURCES = test/ucx/wireup_late.c $(net_rank) $(played_get)
test_ucx_wireup_late_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
# For eyes.
if HAVE_UCX
EXTRA_PROGRAMS += test/ucx/gdr_cost
CLEANFILES += test/ucx/gdr_cost$(EXEEXT)
endif
test_ucx_gdr_cost_SOURCES = test/ucx/gdr_cost.c $(net_rank) $(played_get)
test_ucx_gdr_cost_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
test_ucx_refuse_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
test_ucx_changed_root_LDADD = libtest.la
test_ucx_choose_LDADD = libtest_parts.la $(LDADD)
test_ucx_choose_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
test_ucx_family_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
test_ucx_fpenv_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
test_ucx_fpenv_LDADD = librondo_core.la $(cuda_parts) -lm
test_ucx_greeting_lost_LDADD = libtest_parts.la $(LDADD)
test_ucx_greeting_lost_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
test_ucx_half_connect_LDADD = libtest_parts.la $(LDADD)
test_ucx_half_connect_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
test_ucx_little_memory_LDADD = libtest_parts.la $(LDADD)
test_ucx_little_memory_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
test_ucx_missing_LDADD = libtest_parts.la $(LDADD)
test_ucx_missing_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dlopen
test_ucx_quiet_LDADD = libtest_parts.la $(LDADD)
test_ucx_start_LDADD = libtest_parts.la $(LDADD)
test_ucx_thread_limit_LDADD = libtest_parts.la $(LDADD)
test_ucx_versions_LDADD = libtest_parts.la $(LDADD)
test_ucx_versions_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
