# libfabric between played nodes: the tests of other folders by it, and what is its own.
if HAVE_LIBFABRIC
check_PROGRAMS += \
	test/ofi/forgotten \
	test/ofi/missing \
	test/ofi/networks \
	test/ofi/registered
endif
test_ofi_forgotten_LDADD = libtest.la
test_ofi_missing_LDADD = libtest_parts.la $(LDADD)
test_ofi_missing_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dlopen
test_ofi_networks_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_ofi_networks_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rd_ofi_choose
test_ofi_networks_CPPFLAGS = $(AM_CPPFLAGS) $(LIBFABRIC_CFLAGS)
test_ofi_registered_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_ofi_registered_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rd_ofi_choose
test_ofi_registered_CPPFLAGS = $(AM_CPPFLAGS) $(LIBFABRIC_CFLAGS)
script_tests += \
	test/ofi/fault.sh \
	test/ofi/nodes.sh
