check_PROGRAMS += \
	test/plan/choose \
	test/plan/forced
test_plan_forced_LDADD = libtest.la
