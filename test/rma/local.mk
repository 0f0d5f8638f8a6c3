check_PROGRAMS += \
	test/rma/faults \
	test/rma/litmus \
	test/rma/net_made \
	test/rma/taken_back \
	test/rma/windows
test_rma_windows_SOURCES = test/rma/windows.c test/rma/ways.h
test_rma_windows_LDADD = libtest.la
test_rma_litmus_SOURCES = test/rma/litmus.c test/rma/ways.h
test_rma_litmus_LDADD = libtest.la
test_rma_faults_SOURCES = test/rma/faults.c test/rma/ways.h
test_rma_faults_LDADD = libtest.la
test_rma_taken_back_SOURCES = test/rma/taken_back.c test/rma/ways.h
test_rma_taken_back_LDADD = libtest.la
test_rma_net_made_SOURCES = test/rma/net_made.c test/rma/ways.h
test_rma_net_made_LDADD = libtest.la
