check_PROGRAMS += \
	test/node/agree \
	test/node/fd_pass \
	test/node/node \
	test/node/node_mem \
	test/node/pass_many \
	test/node/rails
test_node_agree_LDADD = libtest.la
