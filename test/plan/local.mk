check_PROGRAMS += \
	test/plan/choose \
	test/plan/forced
test_plan_forced_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
