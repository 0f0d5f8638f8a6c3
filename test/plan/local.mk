check_PROGRAMS += \
	test/plan/choose \
	test/plan/flat \
	test/plan/forced \
	test/plan/narrow \
	test/plan/uneven
test_plan_forced_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_plan_narrow_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_plan_uneven_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
