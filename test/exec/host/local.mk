check_PROGRAMS += \
	test/exec/host/host_copy \
	test/exec/host/nan_scan \
	test/exec/host/nt_store \
	test/exec/host/reduce \
	test/exec/host/reduce_traps
test_exec_host_nan_scan_LDADD = libtest_parts.la $(LDADD) -lm
test_exec_host_reduce_LDADD = libtest_parts.la $(LDADD) -lm
test_exec_host_reduce_traps_LDADD = libtest_parts.la $(LDADD) -lm
test_exec_host_nt_store_LDADD = libtest.la
