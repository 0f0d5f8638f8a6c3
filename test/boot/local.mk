check_PROGRAMS += \
	test/boot/again \
	test/boot/ask \
	test/boot/auth \
	test/boot/broken \
	test/boot/concealed \
	test/boot/create \
	test/boot/derive \
	test/boot/few_descriptors \
	test/boot/hostile \
	test/boot/hosts \
	test/boot/leave \
	test/boot/listener \
	test/boot/locked_memory \
	test/boot/names \
	test/boot/peers \
	test/boot/ports \
	test/boot/ports_kept \
	test/boot/said_late \
	test/boot/wrong
test_boot_ask_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_boot_create_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_boot_few_descriptors_LDADD = libtest.la
test_boot_locked_memory_LDADD = libtest.la
test_boot_ports_kept_LDADD = libtest.la
test_boot_said_late_LDADD = libtest.la
test_boot_hosts_SOURCES = test/boot/hosts.c test/util/enter.h test/util/hosts.c test/util/hosts.h
# The first exchange is the one before which a rank dies.
test_boot_names_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rd_boot_allgather
test_boot_wrong_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_boot_peers_CPPFLAGS = $(AM_CPPFLAGS) $(SODIUM_CFLAGS)
