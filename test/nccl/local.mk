# libnccl.so.2 over host communicators.
check_LTLIBRARIES += libtestnccl.la
libtestnccl_la_SOURCES = \
	test/nccl/nccl_harness.c \
	test/nccl/nccl_harness.h \
	test/nccl/signal_calls.h
libtestnccl_la_LIBADD = libnccl.la libtest.la
nccl_tests = \
	test/nccl/configs \
	test/nccl/groups \
	test/nccl/layout \
	test/nccl/life \
	test/nccl/operations \
	test/nccl/params \
	test/nccl/per_call \
	test/nccl/signals \
	test/nccl/together \
	test/nccl/tuner \
	test/nccl/wrong
check_PROGRAMS += $(nccl_tests)
test_nccl_configs_LDADD = libtestnccl.la
test_nccl_groups_LDADD = libtestnccl.la
test_nccl_layout_LDADD = libtestnccl.la
test_nccl_life_LDADD = libtestnccl.la
test_nccl_operations_LDADD = libtestnccl.la
test_nccl_params_LDADD = libtestnccl.la
test_nccl_per_call_LDADD = libtestnccl.la
test_nccl_signals_LDADD = libtestnccl.la
test_nccl_together_LDADD = libtestnccl.la
test_nccl_tuner_LDADD = libtestnccl.la
test_nccl_tuner_SOURCES = test/nccl/tuner.c test/nccl/tuner_cases.h
test_nccl_wrong_LDADD = libtestnccl.la
test_nccl_tuner_CPPFLAGS = $(AM_CPPFLAGS)
if HAVE_UCX
test_nccl_tuner_CPPFLAGS += -DRD_HAVE_UCX
endif

check_PROGRAMS += test/nccl/algo_lists test/nccl/conf_file test/nccl/interfaces test/nccl/settings
test_nccl_algo_lists_LDADD = libnccl_parts.la librondo_core.la $(cuda_parts)
test_nccl_conf_file_LDADD = libnccl_parts.la librondo_core.la $(cuda_parts)
test_nccl_interfaces_LDADD = libnccl_parts.la librondo_core.la $(cuda_parts)
test_nccl_settings_LDADD = libnccl_parts.la librondo_core.la $(cuda_parts)

script_tests += \
	test/nccl/client.sh \
	test/nccl/examples.sh \
	test/nccl/header.sh \
	test/nccl/symbols.sh

# Tuner plugins: one source, built once for each version of NCCL's interface.
tuner_ldflags = -module -avoid-version -rpath $(abs_builddir) -shared
check_LTLIBRARIES += libnccl-tuner-test2.la
libnccl_tuner_test2_la_SOURCES = test/nccl/tuner_plugin.c
libnccl_tuner_test2_la_CPPFLAGS = $(AM_CPPFLAGS) -DVERSION=2
libnccl_tuner_test2_la_LDFLAGS = $(tuner_ldflags)
check_LTLIBRARIES += libnccl-tuner-test3.la
libnccl_tuner_test3_la_SOURCES = test/nccl/tuner_plugin.c
libnccl_tuner_test3_la_CPPFLAGS = $(AM_CPPFLAGS) -DVERSION=3
libnccl_tuner_test3_la_LDFLAGS = $(tuner_ldflags)
check_LTLIBRARIES += libnccl-tuner-test4.la
libnccl_tuner_test4_la_SOURCES = test/nccl/tuner_plugin.c
libnccl_tuner_test4_la_CPPFLAGS = $(AM_CPPFLAGS) -DVERSION=4
libnccl_tuner_test4_la_LDFLAGS = $(tuner_ldflags)
check_LTLIBRARIES += libnccl-tuner-test5.la
libnccl_tuner_test5_la_SOURCES = test/nccl/tuner_plugin.c
libnccl_tuner_test5_la_CPPFLAGS = $(AM_CPPFLAGS) -DVERSION=5
libnccl_tuner_test5_la_LDFLAGS = $(tuner_ldflags)
check_LTLIBRARIES += libnccl-tuner-test6.la
libnccl_tuner_test6_la_SOURCES = test/nccl/tuner_plugin.c
libnccl_tuner_test6_la_CPPFLAGS = $(AM_CPPFLAGS) -DVERSION=6
libnccl_tuner_test6_la_LDFLAGS = $(tuner_ldflags)
