# The kernels alone on a machine made of threads: no part of CUDA is needed, a C++ compiler will do.
machine_tests = \
	test/sim/collectives \
	test/sim/device \
	test/sim/faults \
	test/sim/messages \
	test/sim/proxy \
	test/sim/signals
if HAVE_CXX
check_PROGRAMS += $(machine_tests)
check_LTLIBRARIES += libmachine.la
endif
machine_sources = \
	lib/kernels/variants.c \
	lib/kernels/program_bytes.c \
	test/sim/fiber.cc \
	test/sim/fiber.h \
	test/sim/machine.cc \
	test/sim/machine.h \
	test/sim/machine_access.cc \
	test/sim/machine_faults.cc \
	test/sim/machine_grid.cc \
	test/sim/machine_int.h \
	test/sim/machine_lines.cc \
	test/sim/machine_lines.h \
	test/sim/machine_sleepers.cc \
	test/sim/machine_stores.cc \
	test/sim/machine_stuck.cc \
	test/sim/machine_threads.cc \
	test/sim/machine_waits.cc \
	test/sim/order.h
libmachine_la_SOURCES = $(machine_sources) test/sim/order_none.h
libmachine_la_CPPFLAGS = -DORDER_NONE -I$(top_srcdir)/lib -I$(top_srcdir)/test
libmachine_la_LIBADD = $(sim_kernels)
libmachine_la_DEPENDENCIES = $(sim_kernels)
sim_kernels = $(kernel_sources:lib/kernels/%.cu=test/sim/%.lo)
$(sim_kernels): test/sim/%.lo: lib/kernels/%.cu $(kernel_headers) test/sim/gpu.cuh lib/base/narrow.h
	$(AM_V_CXX)$(MKDIR_P) test/sim && $(LIBTOOL) $(AM_V_lt) --tag=CXX $(AM_LIBTOOLFLAGS) --mode=compile \
	$(CXX) $(DEFS) -I. -U_GNU_SOURCE \
	-I$(top_srcdir)/lib -I$(top_srcdir)/test -I$(top_srcdir)/test/sim -ffp-contract=off -fno-strict-aliasing -O2 -g1 -x c++ -c -o $@ $<
machine_ldadd = libmachine.la libtest_parts.la librondo_core.la -lm
world_sources = test/sim/world.c test/sim/world_fused.c test/sim/world_data.c test/sim/world_expected.c test/sim/world.h test/sim/world_int.h \
	test/sim/schedule.c test/sim/schedule.h
test_sim_collectives_SOURCES = test/sim/collectives.c $(world_sources)
test_sim_collectives_LDADD = $(machine_ldadd)
nodist_EXTRA_test_sim_collectives_SOURCES = dummy.cc
# The program's own kernels, by the header that is installed.
device_header = lib/rondo_device.cuh lib/rondo.h test/gpu/device_kernels.h test/sim/device_machine.cuh test/sim/gpu.cuh
EXTRA_DIST += test/gpu/device_kernels.cu test/gpu/device_kernels.h test/sim/device_machine.cuh
DEVICE_COMPILE = $(LIBTOOL) $(AM_V_lt) --tag=CXX $(AM_LIBTOOLFLAGS) --mode=compile $(CXX) $(DEFS) \
	-I. -U_GNU_SOURCE \
	-DRONDO_DEVICE_MACHINE='"sim/device_machine.cuh"' -I$(top_srcdir)/lib -I$(top_srcdir)/test -I$(top_srcdir)/test/sim \
	-fno-strict-aliasing -g -x c++ -c -o $@ $(top_srcdir)/test/gpu/device_kernels.cu
test/sim/device_kernels.lo: test/gpu/device_kernels.cu $(device_header)
	$(AM_V_CXX)$(MKDIR_P) test/sim && $(DEVICE_COMPILE) -O2
test_sim_device_SOURCES = test/sim/device.c
test_sim_device_LDADD = test/sim/device_kernels.lo $(machine_ldadd)
nodist_EXTRA_test_sim_device_SOURCES = dummy.cc
test_sim_signals_SOURCES = test/sim/signals.c
test_sim_signals_LDADD = $(machine_ldadd)
nodist_EXTRA_test_sim_signals_SOURCES = dummy.cc
test_sim_faults_SOURCES = test/sim/faults.c $(world_sources)
test_sim_faults_LDADD = $(machine_ldadd)
nodist_EXTRA_test_sim_faults_SOURCES = dummy.cc
test_sim_proxy_SOURCES = test/sim/proxy.cc
test_sim_proxy_CPPFLAGS = -U_GNU_SOURCE $(AM_CPPFLAGS) -I$(top_srcdir)/test/sim
test_sim_proxy_LDADD = $(machine_ldadd)
test_sim_messages_SOURCES = test/sim/messages.c $(world_sources)
test_sim_messages_LDADD = $(machine_ldadd)
nodist_EXTRA_test_sim_messages_SOURCES = dummy.cc

# The same kernels, late and out of order: see test/delays/gpu.cuh.
delays_headers = test/delays/delays.h test/delays/gpu.cuh
EXTRA_DIST += $(delays_headers)
if HAVE_CXX
check_PROGRAMS += $(delayed_tests)
check_LTLIBRARIES += libmachine_delayed.la
endif
delayed_tests = \
	test/sim/delayed/collectives \
	test/sim/delayed/messages
libmachine_delayed_la_SOURCES = $(machine_sources) test/delays/read.c test/sim/delays.c test/sim/order_none.h
libmachine_delayed_la_CPPFLAGS = -DORDER_NONE -I$(top_srcdir)/lib -I$(top_srcdir)/test
libmachine_delayed_la_LIBADD = $(delayed_sim_kernels)
libmachine_delayed_la_DEPENDENCIES = $(delayed_sim_kernels)
delayed_sim_kernels = $(kernel_sources:lib/kernels/%.cu=test/sim/delayed/%.lo)
$(delayed_sim_kernels): test/sim/delayed/%.lo: lib/kernels/%.cu $(kernel_headers) $(delays_headers) test/sim/gpu.cuh
	$(AM_V_CXX)$(MKDIR_P) test/sim/delayed && $(LIBTOOL) $(AM_V_lt) --tag=CXX $(AM_LIBTOOLFLAGS) --mode=compile \
	$(CXX) $(DEFS) -I. -U_GNU_SOURCE -I$(top_srcdir)/lib -I$(top_srcdir)/test -I$(top_srcdir)/test/delays \
	-I$(top_srcdir)/test/sim -ffp-contract=off -fno-strict-aliasing -O1 -g1 -x c++ -c -o $@ $<
delayed_ldadd = libmachine_delayed.la libtest_parts.la librondo_core.la -lm
test_sim_delayed_collectives_SOURCES = test/sim/collectives.c $(world_sources)
test_sim_delayed_collectives_LDADD = $(delayed_ldadd)
nodist_EXTRA_test_sim_delayed_collectives_SOURCES = dummy.cc
test_sim_delayed_messages_SOURCES = test/sim/messages.c $(world_sources)
test_sim_delayed_messages_LDADD = $(delayed_ldadd)
nodist_EXTRA_test_sim_delayed_messages_SOURCES = dummy.cc

# The same kernels under ThreadSanitizer, which is told what orders a GPU's threads: see test/sim/order.h. They alone are
# compiled for it, and proxies that are kernels; hosts say what they read.
# test/sim/raced.sh runs them: by themselves they would plant faults that are races.
if HAVE_FIBERS
EXTRA_PROGRAMS += $(raced_tests)
check_DATA += $(raced_tests:%=%$(EXEEXT))
check_LTLIBRARIES += libmachine_raced.la
endif
CLEANFILES += $(raced_tests:%=%$(EXEEXT))
raced_tests = \
	test/sim/raced/collectives \
	test/sim/raced/device \
	test/sim/raced/messages \
	test/sim/raced/proxy \
	test/sim/raced/signals
libmachine_raced_la_SOURCES = $(machine_sources) test/sim/order.cc
EXTRA_DIST += test/sim/touch.cc
libmachine_raced_la_CPPFLAGS = -I$(top_srcdir)/lib -I$(top_srcdir)/test
libmachine_raced_la_LIBADD = $(raced_sim_kernels) test/sim/raced/touch.lo
libmachine_raced_la_DEPENDENCIES = $(raced_sim_kernels) test/sim/raced/touch.lo
raced_sim_kernels = $(kernel_sources:lib/kernels/%.cu=test/sim/raced/%.lo)
RACED_COMPILE = $(MKDIR_P) test/sim/raced && $(LIBTOOL) $(AM_V_lt) --tag=CXX $(AM_LIBTOOLFLAGS) --mode=compile \
	$(CXX) $(DEFS) -I. -U_GNU_SOURCE -I$(top_srcdir)/lib -I$(top_srcdir)/test -I$(top_srcdir)/test/sim \
	-ffp-contract=off -fno-strict-aliasing -O1 -g1 -fsanitize=thread -x c++ -c -o $@
$(raced_sim_kernels): test/sim/raced/%.lo: lib/kernels/%.cu $(kernel_headers) test/sim/gpu.cuh lib/base/narrow.h
	$(AM_V_CXX)$(RACED_COMPILE) $<
test/sim/raced/touch.lo: test/sim/touch.cc test/sim/order.h
	$(AM_V_CXX)$(RACED_COMPILE) $(top_srcdir)/test/sim/touch.cc
raced_ldadd = libmachine_raced.la libtest_parts.la librondo_core.la -lm
raced_ldflags = $(AM_LDFLAGS) -fsanitize=thread
test_sim_raced_collectives_SOURCES = test/sim/collectives.c $(world_sources)
test_sim_raced_collectives_LDADD = $(raced_ldadd)
test_sim_raced_collectives_LDFLAGS = $(raced_ldflags)
nodist_EXTRA_test_sim_raced_collectives_SOURCES = dummy.cc
test/sim/raced/device_kernels.lo: test/gpu/device_kernels.cu $(device_header)
	$(AM_V_CXX)$(MKDIR_P) test/sim/raced && $(DEVICE_COMPILE) -O1 -fsanitize=thread
test_sim_raced_device_SOURCES = test/sim/device.c
test_sim_raced_device_LDADD = test/sim/raced/device_kernels.lo $(raced_ldadd)
test_sim_raced_device_LDFLAGS = $(raced_ldflags)
nodist_EXTRA_test_sim_raced_device_SOURCES = dummy.cc
test_sim_raced_messages_SOURCES = test/sim/messages.c $(world_sources)
test_sim_raced_messages_LDADD = $(raced_ldadd)
test_sim_raced_messages_LDFLAGS = $(raced_ldflags)
nodist_EXTRA_test_sim_raced_messages_SOURCES = dummy.cc
test_sim_raced_signals_SOURCES = test/sim/signals.c
test_sim_raced_signals_LDADD = $(raced_ldadd)
test_sim_raced_signals_LDFLAGS = $(raced_ldflags)
nodist_EXTRA_test_sim_raced_signals_SOURCES = dummy.cc
test_sim_raced_proxy_SOURCES = test/sim/proxy.cc
test_sim_raced_proxy_CPPFLAGS = -U_GNU_SOURCE $(AM_CPPFLAGS) -I$(top_srcdir)/test/sim
test_sim_raced_proxy_CXXFLAGS = $(AM_CXXFLAGS) -fsanitize=thread
test_sim_raced_proxy_LDADD = $(raced_ldadd)
test_sim_raced_proxy_LDFLAGS = $(raced_ldflags)

# The CUDA side without a GPU: the same sources, kernels too, on a runtime and a machine made of threads.
sim_tests = \
	test/sim/lengths \
	test/sim/signature \
	test/sim/staging \
	test/sim/copy_engine \
	test/sim/copy_joins \
	test/sim/devices \
	test/sim/gdr \
	test/sim/doctor \
	test/sim/early \
	test/sim/footprint \
	test/sim/fused \
	test/sim/grow \
	test/sim/late \
	test/sim/verdicts \
	test/sim/peer_leaves \
	test/sim/life \
	test/sim/limits \
	test/sim/long_groups \
	test/sim/matrix \
	test/sim/mixed \
	test/sim/narrow \
	test/sim/onesided \
	test/sim/near \
	test/sim/programs \
	test/sim/rails \
	test/sim/registered \
	test/sim/ring_order \
	test/sim/rcache \
	test/sim/reset \
	test/sim/checked \
	test/sim/rounds \
	test/sim/shim \
	test/sim/stalled \
	test/sim/suspend \
	test/sim/force_next \
	test/sim/launch_event \
	test/sim/user_kernels
if HAVE_CUDA
if HAVE_CXX
check_PROGRAMS += $(sim_tests)
check_LTLIBRARIES += libsim.la
endif
endif
libsim_la_SOURCES = \
	lib/kernels/launch.c \
	test/gpu/device.c \
	test/gpu/device.h \
	test/sim/poor.h \
	test/sim/runtime.h \
	test/sim/runtime_device.c \
	test/sim/runtime_graph.c \
	test/sim/runtime_memory.c \
	test/sim/runtime_stream.c
libsim_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CFLAGS)
libsim_la_LIBADD = libmachine.la
sim_ldadd = libtest_parts.la librondo_core.la libsim.la -lm
sim_cppflags = $(AM_CPPFLAGS) $(CUDA_CFLAGS)
test_sim_matrix_SOURCES = test/gpu/matrix.c
test_sim_matrix_CPPFLAGS = $(sim_cppflags)
test_sim_matrix_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_matrix_SOURCES = dummy.cc
test_sim_mixed_SOURCES = test/gpu/mixed.c test/gpu/device.c test/gpu/device.h
test_sim_mixed_CPPFLAGS = $(sim_cppflags)
test_sim_mixed_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_mixed_SOURCES = dummy.cc
test_sim_narrow_SOURCES = test/gpu/narrow.c test/gpu/device.c test/gpu/device.h
test_sim_narrow_CPPFLAGS = $(sim_cppflags)
test_sim_narrow_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_narrow_SOURCES = dummy.cc
test_sim_early_SOURCES = test/sim/early.c test/gpu/device.c test/gpu/device.h
test_sim_early_CPPFLAGS = $(sim_cppflags)
test_sim_early_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_early_SOURCES = dummy.cc
test_sim_peer_leaves_SOURCES = test/sim/peer_leaves.c test/gpu/device.c test/gpu/device.h
test_sim_peer_leaves_CPPFLAGS = $(sim_cppflags)
test_sim_peer_leaves_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_peer_leaves_SOURCES = dummy.cc
test_sim_near_SOURCES = test/sim/near.c test/gpu/device.c test/gpu/device.h
test_sim_near_CPPFLAGS = $(sim_cppflags)
test_sim_near_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_near_SOURCES = dummy.cc
test_sim_life_SOURCES = test/gpu/life.c test/gpu/life.h test/gpu/life_beside.c
test_sim_life_CPPFLAGS = $(sim_cppflags)
test_sim_life_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_life_SOURCES = dummy.cc
test_sim_lengths_SOURCES = test/gpu/lengths.c test/gpu/device.c test/gpu/device.h
test_sim_lengths_CPPFLAGS = $(sim_cppflags)
test_sim_lengths_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_lengths_SOURCES = dummy.cc
test_sim_signature_SOURCES = test/gpu/signature.c test/gpu/device.c test/gpu/device.h
test_sim_signature_CPPFLAGS = $(sim_cppflags)
test_sim_signature_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_signature_SOURCES = dummy.cc
test_sim_copy_engine_SOURCES = test/gpu/copy_engine.c test/gpu/device.c test/gpu/device.h
test_sim_copy_engine_CPPFLAGS = $(sim_cppflags)
test_sim_copy_engine_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_copy_engine_SOURCES = dummy.cc
test_sim_copy_joins_SOURCES = test/sim/copy_joins.c test/gpu/device.c test/gpu/device.h
test_sim_copy_joins_CPPFLAGS = $(sim_cppflags)
test_sim_copy_joins_LDADD = $(sim_ldadd)
test_sim_copy_joins_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=cudaMemcpyAsync
nodist_EXTRA_test_sim_copy_joins_SOURCES = dummy.cc
test_sim_staging_SOURCES = test/gpu/staging.c test/gpu/device.c test/gpu/device.h
test_sim_staging_CPPFLAGS = $(sim_cppflags)
test_sim_staging_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_staging_SOURCES = dummy.cc
test_sim_verdicts_SOURCES = test/gpu/verdicts.c test/gpu/device.c test/gpu/device.h
test_sim_verdicts_CPPFLAGS = $(sim_cppflags)
test_sim_verdicts_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_verdicts_SOURCES = dummy.cc
test_sim_late_SOURCES = test/sim/late.c
test_sim_late_CPPFLAGS = $(sim_cppflags)
test_sim_late_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_late_SOURCES = dummy.cc
test_sim_stalled_SOURCES = test/sim/stalled.c
test_sim_stalled_CPPFLAGS = $(sim_cppflags)
test_sim_stalled_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_stalled_SOURCES = dummy.cc
test_sim_devices_SOURCES = examples/devices.c
test_sim_devices_CPPFLAGS = $(sim_cppflags)
test_sim_devices_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_devices_SOURCES = dummy.cc
test_sim_gdr_SOURCES = test/gpu/gdr.c test/gpu/device.c test/gpu/device.h $(played_get)
test_sim_gdr_CPPFLAGS = $(sim_cppflags) $(UCX_CFLAGS)
test_sim_gdr_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_gdr_SOURCES = dummy.cc
test_sim_doctor_SOURCES = \
	test/sim/doctor.c \
	test/util/nvml_played.c \
	test/util/nvml_played.h \
	tools/doctor_gpu.c \
	tools/doctor_pairs.c
test_sim_doctor_CPPFLAGS = $(sim_cppflags) -I$(top_srcdir)/tools
test_sim_doctor_LDADD = $(sim_ldadd)
test_sim_doctor_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dlopen -Wl,--wrap=dlsym
nodist_EXTRA_test_sim_doctor_SOURCES = dummy.cc
test_sim_footprint_SOURCES = test/sim/footprint.c test/gpu/device.c test/gpu/device.h
test_sim_footprint_CPPFLAGS = $(sim_cppflags)
test_sim_footprint_LDADD = $(sim_ldadd)
test_sim_footprint_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=cudaMalloc -Wl,--wrap=cudaHostAlloc -Wl,--wrap=cudaHostRegister \
	-Wl,--wrap=rd_cuda_create
nodist_EXTRA_test_sim_footprint_SOURCES = dummy.cc
test_sim_limits_SOURCES = test/sim/limits.c
test_sim_limits_CPPFLAGS = $(sim_cppflags)
test_sim_limits_LDADD = $(sim_ldadd)
test_sim_limits_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rd_kernel_load -Wl,--wrap=rd_cuda_group_estimate \
	-Wl,--wrap=cudaLaunchKernelExC -Wl,--wrap=cudaEventQuery
nodist_EXTRA_test_sim_limits_SOURCES = dummy.cc
test_sim_fused_SOURCES = test/gpu/fused.c test/gpu/device.c test/gpu/device.h
test_sim_fused_CPPFLAGS = $(sim_cppflags)
test_sim_fused_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_fused_SOURCES = dummy.cc
test_sim_grow_SOURCES = test/gpu/grow.c test/gpu/device.c test/gpu/device.h
test_sim_grow_CPPFLAGS = $(sim_cppflags)
test_sim_grow_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_grow_SOURCES = dummy.cc
test_sim_long_groups_SOURCES = test/gpu/long_groups.c test/gpu/device.c test/gpu/device.h
test_sim_long_groups_CPPFLAGS = $(sim_cppflags)
test_sim_long_groups_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_long_groups_SOURCES = dummy.cc
test_sim_registered_SOURCES = test/gpu/registered.c test/gpu/device.c test/gpu/device.h
test_sim_registered_CPPFLAGS = $(sim_cppflags)
test_sim_registered_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_registered_SOURCES = dummy.cc
test_sim_ring_order_SOURCES = test/sim/ring_order.c test/gpu/device.c test/gpu/device.h
test_sim_ring_order_CPPFLAGS = $(sim_cppflags)
test_sim_ring_order_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_ring_order_SOURCES = dummy.cc
test_sim_user_kernels_SOURCES = test/gpu/user_kernels.c test/gpu/device.c test/gpu/device.h
test_sim_user_kernels_CPPFLAGS = $(sim_cppflags)
test_sim_user_kernels_LDADD = test/sim/device_kernels.lo $(sim_ldadd)
nodist_EXTRA_test_sim_user_kernels_SOURCES = dummy.cc
test_sim_onesided_SOURCES = test/gpu/onesided.c test/gpu/device.c test/gpu/device.h
test_sim_onesided_CPPFLAGS = $(sim_cppflags)
test_sim_onesided_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_onesided_SOURCES = dummy.cc
test_sim_rcache_SOURCES = test/sim/rcache.c
test_sim_rcache_CPPFLAGS = $(sim_cppflags)
test_sim_rcache_LDADD = $(sim_ldadd)
test_sim_rcache_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=cudaFree
nodist_EXTRA_test_sim_rcache_SOURCES = dummy.cc
test_sim_reset_SOURCES = test/sim/reset.c test/gpu/device.c test/gpu/device.h
test_sim_reset_CPPFLAGS = $(sim_cppflags)
test_sim_reset_LDADD = $(sim_ldadd)
test_sim_reset_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=cudaLaunchKernelExC -Wl,--wrap=cudaHostAlloc
nodist_EXTRA_test_sim_reset_SOURCES = dummy.cc
test_sim_checked_SOURCES = test/sim/checked.c test/gpu/device.c test/gpu/device.h
test_sim_checked_CPPFLAGS = $(sim_cppflags)
test_sim_checked_LDADD = $(sim_ldadd)
test_sim_checked_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=cudaLaunchKernelExC
nodist_EXTRA_test_sim_checked_SOURCES = dummy.cc
test_sim_rounds_SOURCES = test/gpu/rounds.c test/gpu/device.c test/gpu/device.h
test_sim_rounds_CPPFLAGS = $(sim_cppflags)
test_sim_rounds_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_rounds_SOURCES = dummy.cc
test_sim_rails_SOURCES = test/gpu/rails.c test/gpu/device.c test/gpu/device.h
test_sim_rails_CPPFLAGS = $(sim_cppflags)
test_sim_rails_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_rails_SOURCES = dummy.cc
test_sim_programs_SOURCES = test/gpu/programs.c
test_sim_programs_CPPFLAGS = $(sim_cppflags)
test_sim_programs_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_programs_SOURCES = dummy.cc
test_sim_launch_event_SOURCES = test/gpu/launch_event.c
test_sim_launch_event_CPPFLAGS = $(sim_cppflags)
test_sim_launch_event_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_launch_event_SOURCES = dummy.cc
test_sim_force_next_SOURCES = test/gpu/force_next.c
test_sim_force_next_CPPFLAGS = $(sim_cppflags)
test_sim_force_next_LDADD = $(sim_ldadd)
nodist_EXTRA_test_sim_force_next_SOURCES = dummy.cc
test_sim_suspend_SOURCES = test/gpu/suspend.c test/sim/poor.c test/sim/poor.h
test_sim_suspend_CPPFLAGS = $(sim_cppflags)
test_sim_suspend_LDADD = $(sim_ldadd)
test_sim_suspend_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc
nodist_EXTRA_test_sim_suspend_SOURCES = dummy.cc
shim_sources = \
	test/gpu/shim.c \
	test/gpu/shim.h \
	test/gpu/shim_aborted.c \
	test/gpu/shim_gone.c \
	test/gpu/shim_memory.c \
	test/gpu/shim_one_thread.c \
	test/gpu/shim_signals.c \
	test/nccl/nccl_harness.c \
	test/nccl/nccl_harness.h \
	test/nccl/signal_calls.h
test_sim_shim_SOURCES = $(shim_sources) test/sim/driver.c
test_sim_shim_CPPFLAGS = $(sim_cppflags)
test_sim_shim_LDADD = libnccl_parts.la $(sim_ldadd)
test_sim_shim_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dlopen -Wl,--wrap=dlsym
nodist_EXTRA_test_sim_shim_SOURCES = dummy.cc

script_tests += \
	test/sim/delayed.sh \
	test/sim/many.sh \
	test/sim/nodes.sh \
	test/sim/ordered.sh \
	test/sim/raced.sh \
	test/sim/scheduled.sh \
	test/sim/simple.sh \
	test/sim/window_host.sh
