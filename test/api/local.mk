check_PROGRAMS += \
	test/api/args \
	test/api/counts_big \
	test/api/op_matrix \
	test/api/random_programs \
	test/api/rounding \
	test/api/traps \
	test/api/v_tables
test_api_args_LDADD = libtest.la
test_api_counts_big_LDADD = libtest.la
test_api_op_matrix_LDADD = libtest.la
test_api_random_programs_LDADD = libtest.la
test_api_rounding_LDADD = libtest.la -lm
test_api_traps_LDADD = libtest.la -lm
test_api_v_tables_LDADD = libtest.la
