check_PROGRAMS += \
	test/monitor/alike \
	test/monitor/blamed \
	test/monitor/callsites \
	test/monitor/circles \
	test/monitor/crowd \
	test/monitor/differ \
	test/monitor/differ_split \
	test/monitor/dump \
	test/monitor/dump_slow \
	test/monitor/dumps_forged \
	test/monitor/events \
	test/monitor/failed \
	test/monitor/followed \
	test/monitor/forged \
	test/monitor/hashes \
	test/monitor/hearts \
	test/monitor/judged \
	test/monitor/judged_slow \
	test/monitor/killed \
	test/monitor/late \
	test/monitor/metrics \
	test/monitor/nccl_ras \
	test/monitor/metrics_end \
	test/monitor/planted \
	test/monitor/quiet \
	test/monitor/ras \
	test/monitor/ras_tcp \
	test/monitor/record \
	test/monitor/slow \
	test/monitor/slow_link \
	test/monitor/socket \
	test/monitor/stacks \
	test/monitor/tags
test_monitor_forged_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_monitor_judged_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_monitor_judged_SOURCES = test/monitor/judged.c test/monitor/judged.h
test_monitor_judged_slow_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_monitor_judged_slow_SOURCES = test/monitor/judged_slow.c test/monitor/judged.h
test_monitor_killed_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_monitor_alike_LDADD = libtest.la
test_monitor_circles_LDADD = libtest.la
test_monitor_crowd_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_monitor_crowd_SOURCES = test/monitor/crowd.c test/monitor/obedient.c test/monitor/obedient.h
test_monitor_differ_LDADD = libtest.la
test_monitor_differ_split_LDADD = libtest.la
test_monitor_dump_LDADD = libtest.la
test_monitor_dump_SOURCES = test/monitor/dump.c test/monitor/obedient.c test/monitor/obedient.h
test_monitor_dump_slow_LDADD = libtest.la
test_monitor_dump_slow_SOURCES = test/monitor/dump_slow.c test/util/slow_open.h test/monitor/obedient.c test/monitor/obedient.h
test_monitor_dumps_forged_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_monitor_dumps_forged_SOURCES = \
	test/monitor/dumps_forged.c \
	$(fuzz_dumps)
test_monitor_events_LDADD = libtest.la
test_monitor_events_SOURCES = \
	test/monitor/events.c \
	test/monitor/obedient.c \
	test/monitor/obedient.h \
	tools/value.c \
	tools/value.h \
	tools/value_json.c
test_monitor_followed_LDADD = libtest.la
test_monitor_followed_SOURCES = test/monitor/followed.c test/monitor/obedient.c test/monitor/obedient.h
test_monitor_failed_LDADD = libtest.la
test_monitor_failed_SOURCES = test/monitor/failed.c test/monitor/obedient.c test/monitor/obedient.h
test_monitor_callsites_LDADD = libtest.la
test_monitor_callsites_SOURCES = \
	test/monitor/callsites.c \
	test/monitor/obedient.c \
	test/monitor/obedient.h \
	tools/value.c \
	tools/value.h \
	tools/value_json.c
test_monitor_hearts_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_monitor_hearts_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rd_dumps_core -Wl,--wrap=rd_thread_start
test_monitor_hearts_SOURCES = test/monitor/hearts.c test/monitor/obedient.c test/monitor/obedient.h
test_monitor_hashes_LDADD = libtest.la
test_monitor_hashes_SOURCES = \
	test/monitor/hashes.c \
	test/monitor/obedient.c \
	test/monitor/obedient.h \
	tools/value.c \
	tools/value.h \
	tools/value_json.c
test_monitor_late_LDADD = libtest.la
test_monitor_metrics_end_LDADD = libtest.la
test_monitor_metrics_end_SOURCES = test/monitor/metrics_end.c test/monitor/obedient.c test/monitor/obedient.h
test_monitor_metrics_LDADD = libtest.la
test_monitor_metrics_SOURCES = test/monitor/metrics.c test/monitor/obedient.c test/monitor/obedient.h
test_monitor_nccl_ras_LDADD = libtest.la
test_monitor_nccl_ras_SOURCES = \
	test/monitor/nccl_ras.c \
	test/monitor/obedient.c \
	test/monitor/obedient.h \
	test/monitor/ports.h \
	tools/value.c \
	tools/value.h \
	tools/value_json.c
test_monitor_quiet_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_monitor_quiet_SOURCES = test/monitor/quiet.c test/monitor/obedient.c test/monitor/obedient.h
test_monitor_planted_LDADD = libtest.la
test_monitor_planted_SOURCES = test/monitor/planted.c test/monitor/obedient.c test/monitor/obedient.h
test_monitor_ras_LDADD = libtest.la
test_monitor_ras_SOURCES = test/monitor/ras.c test/monitor/obedient.c test/monitor/obedient.h
test_monitor_ras_tcp_LDADD = libtest.la
test_monitor_ras_tcp_SOURCES = test/monitor/ras_tcp.c test/monitor/obedient.c test/monitor/obedient.h test/monitor/ports.h
test_monitor_slow_LDADD = libtest.la
test_monitor_slow_SOURCES = test/monitor/slow.c test/monitor/obedient.c test/monitor/obedient.h
played_links = test/transport/socketpair.h test/transport/socketpair_transport.c \
	test/transport/socketpair_wireup.c
test_monitor_blamed_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_monitor_blamed_SOURCES = test/monitor/blamed.c test/monitor/obedient.c test/monitor/obedient.h $(played_links)
test_monitor_slow_link_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_monitor_slow_link_SOURCES = test/monitor/slow_link.c test/monitor/obedient.c test/monitor/obedient.h $(played_links)
test_monitor_socket_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_monitor_stacks_LDADD = libtest.la
test_monitor_stacks_SOURCES = test/monitor/stacks.c test/monitor/obedient.c test/monitor/obedient.h
test_monitor_tags_LDADD = libtest.la

script_tests += \
	test/monitor/analyse.sh \
	test/monitor/blame.sh
EXTRA_DIST += \
	test/monitor/analyse.py \
	test/monitor/dump.py

# For a machine of many cores that has no build: `make install-monitor-tests DESTDIR=DIR`, and there monitor-blame -n 100
# and quiet --seconds 3600. They carry the library.
monitor_trials = \
	test/monitor/blamed \
	test/monitor/crowd \
	test/monitor/differ \
	test/monitor/differ_split \
	test/monitor/judged \
	test/monitor/late \
	test/monitor/quiet \
	test/monitor/slow \
	test/monitor/slow_link
if HAVE_CUDA
monitor_trials += test/sim/verdicts
endif
test_monitor_differ_LDFLAGS = -static
test_monitor_late_LDFLAGS = -static
test_monitor_slow_LDFLAGS = -static
install-monitor-tests: libtest_parts.la rondo-ras $(monitor_trials)
	$(MKDIR_P) $(DESTDIR)$(pkglibexecdir)
	$(LIBTOOL) $(AM_V_lt) --mode=install $(INSTALL_PROGRAM) rondo-ras $(monitor_trials) $(DESTDIR)$(pkglibexecdir)
	$(INSTALL_SCRIPT) $(srcdir)/test/monitor/blame.sh $(DESTDIR)$(pkglibexecdir)/monitor-blame
.PHONY: install-monitor-tests
