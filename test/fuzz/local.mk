# Parsers of what comes from outside, each a fuzz target; here the corpus and mutations of it are replayed. test/fuzz/run.sh
# builds the same targets for libFuzzer.
fuzz_dumps = \
	test/fuzz/dumps.c \
	test/fuzz/dumps.h \
	test/fuzz/dumps_write.c \
	$(dump_readers)
fuzz_tests = \
	test/fuzz/dumps \
	test/fuzz/environment \
	test/fuzz/files \
	test/fuzz/handshake \
	test/fuzz/monitor_record \
	test/fuzz/monitor_wire \
	test/fuzz/records \
	test/fuzz/unique_id
if HAVE_EXPAT
fuzz_tests += test/fuzz/graphs test/fuzz/topology
endif
check_PROGRAMS += $(fuzz_tests)
test_fuzz_dumps_SOURCES = $(fuzz_dumps) test/fuzz/replay.c
test_fuzz_environment_SOURCES = test/fuzz/environment.c test/fuzz/replay.c
test_fuzz_files_SOURCES = test/fuzz/files.c test/fuzz/replay.c
test_fuzz_graphs_SOURCES = test/fuzz/graphs.c test/fuzz/replay.c
test_fuzz_handshake_SOURCES = test/fuzz/handshake.c test/fuzz/replay.c
test_fuzz_monitor_record_SOURCES = \
	test/fuzz/dumps.h \
	test/fuzz/dumps_write.c \
	test/fuzz/monitor_record.c \
	test/fuzz/replay.c
test_fuzz_monitor_wire_SOURCES = test/fuzz/monitor_wire.c test/fuzz/replay.c
test_fuzz_monitor_wire_CPPFLAGS = $(AM_CPPFLAGS) $(SODIUM_CFLAGS)
test_fuzz_records_SOURCES = test/fuzz/records.c test/fuzz/replay.c
test_fuzz_topology_SOURCES = test/fuzz/topology.c test/fuzz/replay.c
test_fuzz_unique_id_SOURCES = test/fuzz/unique_id.c test/fuzz/replay.c
test_fuzz_records_CPPFLAGS = $(AM_CPPFLAGS) $(SODIUM_CFLAGS)
EXTRA_DIST += \
	test/fault/mutants.sh \
	test/fault/record.sh \
	test/fuzz/corpus \
	test/fuzz/run.sh
