# Profiler plugins. The recorder is built once for each version of NCCL's interface, as a module that nobody installs.
check_PROGRAMS += test/profile/plugins
test_profile_plugins_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
recorder_sources = test/profile/recorder.c test/profile/recorder.h
recorder_ldflags = -module -avoid-version -rpath $(abs_builddir) -shared
check_LTLIBRARIES += libnccl-profiler-recorder1.la
libnccl_profiler_recorder1_la_SOURCES = $(recorder_sources)
libnccl_profiler_recorder1_la_CPPFLAGS = $(AM_CPPFLAGS) -DVERSION=1
libnccl_profiler_recorder1_la_LDFLAGS = $(recorder_ldflags)
check_LTLIBRARIES += libnccl-profiler-recorder2.la
libnccl_profiler_recorder2_la_SOURCES = $(recorder_sources)
libnccl_profiler_recorder2_la_CPPFLAGS = $(AM_CPPFLAGS) -DVERSION=2
libnccl_profiler_recorder2_la_LDFLAGS = $(recorder_ldflags)
check_LTLIBRARIES += libnccl-profiler-recorder3.la
libnccl_profiler_recorder3_la_SOURCES = $(recorder_sources)
libnccl_profiler_recorder3_la_CPPFLAGS = $(AM_CPPFLAGS) -DVERSION=3
libnccl_profiler_recorder3_la_LDFLAGS = $(recorder_ldflags)
check_LTLIBRARIES += libnccl-profiler-recorder4.la
libnccl_profiler_recorder4_la_SOURCES = $(recorder_sources)
libnccl_profiler_recorder4_la_CPPFLAGS = $(AM_CPPFLAGS) -DVERSION=4
libnccl_profiler_recorder4_la_LDFLAGS = $(recorder_ldflags)
check_LTLIBRARIES += libnccl-profiler-recorder5.la
libnccl_profiler_recorder5_la_SOURCES = $(recorder_sources)
libnccl_profiler_recorder5_la_CPPFLAGS = $(AM_CPPFLAGS) -DVERSION=5
libnccl_profiler_recorder5_la_LDFLAGS = $(recorder_ldflags)
check_LTLIBRARIES += libnccl-profiler-recorder6.la
libnccl_profiler_recorder6_la_SOURCES = $(recorder_sources)
libnccl_profiler_recorder6_la_CPPFLAGS = $(AM_CPPFLAGS) -DVERSION=6
libnccl_profiler_recorder6_la_LDFLAGS = $(recorder_ldflags)
check_LTLIBRARIES += libnccl-profiler-recorder7.la
libnccl_profiler_recorder7_la_SOURCES = $(recorder_sources)
libnccl_profiler_recorder7_la_CPPFLAGS = $(AM_CPPFLAGS) -DVERSION=7
libnccl_profiler_recorder7_la_LDFLAGS = $(recorder_ldflags)

# NVTX: a tool, as a module.
if HAVE_NVTX
check_PROGRAMS += test/profile/ranges
check_LTLIBRARIES += librondo-injection.la
endif
test_profile_ranges_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_profile_ranges_SOURCES = test/profile/ranges.c test/profile/injection.h
librondo_injection_la_SOURCES = test/profile/injection.c test/profile/injection.h
librondo_injection_la_CPPFLAGS = $(AM_CPPFLAGS) $(NVTX_CFLAGS)
librondo_injection_la_LDFLAGS = $(recorder_ldflags)
