check_PROGRAMS += \
	test/transport/liveness

if HAVE_UCX
check_PROGRAMS += \
	test/transport/nodes \
	test/transport/nodes_link \
	test/transport/nodes_zcopy
endif
test_transport_nodes_LDADD = libtest.la
test_transport_nodes_zcopy_LDADD = libtest.la
test_transport_nodes_link_LDADD = libtest.la
test_transport_nodes_link_SOURCES = test/transport/nodes_link.c test/util/enter.h test/util/hosts.c test/util/hosts.h

script_tests += \
	test/transport/nodes_fault.sh
