# libnccl.so.2 over host communicators.
check_LTLIBRARIES += libtestnccl.la
libtestnccl_la_SOURCES = \
	test/nccl/nccl_harness.c \
	test/nccl/nccl_harness.h
libtestnccl_la_LIBADD = libnccl.la libtest.la
nccl_tests = \
	test/nccl/configs \
	test/nccl/groups \
	test/nccl/layout \
	test/nccl/life \
	test/nccl/operations \
	test/nccl/params \
	test/nccl/per_call \
	test/nccl/together \
	test/nccl/wrong
check_PROGRAMS += $(nccl_tests)
test_nccl_configs_LDADD = libtestnccl.la
test_nccl_groups_LDADD = libtestnccl.la
test_nccl_layout_LDADD = libtestnccl.la
test_nccl_life_LDADD = libtestnccl.la
test_nccl_operations_LDADD = libtestnccl.la
test_nccl_params_LDADD = libtestnccl.la
test_nccl_per_call_LDADD = libtestnccl.la
test_nccl_together_LDADD = libtestnccl.la
test_nccl_wrong_LDADD = libtestnccl.la

check_PROGRAMS += test/nccl/conf_file test/nccl/settings
test_nccl_conf_file_LDADD = libnccl_parts.la librondo_core.la $(cuda_parts)
test_nccl_settings_LDADD = libnccl_parts.la librondo_core.la $(cuda_parts)

script_tests += \
	test/nccl/client.sh \
	test/nccl/header.sh \
	test/nccl/symbols.sh
