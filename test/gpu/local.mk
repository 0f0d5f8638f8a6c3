# On GPUs: `make check-gpu` here, or `make install-gpu-tests` and there the script alone; the programs carry the library.
gpu_tests = \
	test/gpu/lengths \
	test/gpu/signature \
	test/gpu/verdicts \
	test/gpu/copy_engine \
	test/gpu/staging \
	test/gpu/fused \
	test/gpu/gdr \
	test/gpu/grow \
	test/gpu/life \
	test/gpu/long_groups \
	test/gpu/matrix \
	test/gpu/mixed \
	test/gpu/narrow \
	test/gpu/onesided \
	test/gpu/sanitizer_planted \
	test/gpu/programs \
	test/gpu/rails \
	test/gpu/registered \
	test/gpu/rounds \
	test/gpu/shim \
	test/gpu/suspend \
	test/gpu/force_next \
	test/gpu/launch_event \
	test/gpu/user_kernels
EXTRA_PROGRAMS += $(gpu_tests) $(cuda_examples)
cuda_examples = \
	$(device_examples) \
	examples/devices \
	examples/graph.mpi
cuda_examples_built = examples/devices $(device_examples)
# With kernels of their own: compiled as a program's are, and installed beside the tests.
device_examples = \
	examples/allreduce_rmsnorm \
	examples/halo_device
EXTRA_DIST += $(device_examples:%=%.cu)
CLEANFILES += examples/*.lo
EXAMPLE_NVCOMPILE = $(LIBTOOL) $(AM_V_lt) --tag=CC $(AM_LIBTOOLFLAGS) --mode=compile $(NVCC) $(NVCC_ARCH) \
	-I$(top_srcdir)/lib -std=c++17 -fmad=false -O3 -prefer-non-pic -c -o
examples/allreduce_rmsnorm.lo: examples/allreduce_rmsnorm.cu lib/rondo_device.cuh lib/rondo.h
	$(AM_V_GEN)$(MKDIR_P) examples && $(EXAMPLE_NVCOMPILE) $@ $<
examples/halo_device.lo: examples/halo_device.cu lib/rondo_device.cuh lib/rondo.h
	$(AM_V_GEN)$(MKDIR_P) examples && $(EXAMPLE_NVCOMPILE) $@ $<
examples_allreduce_rmsnorm_SOURCES =
examples_allreduce_rmsnorm_LDADD = examples/allreduce_rmsnorm.lo librondo.la $(CUDA_LIBS)
examples_allreduce_rmsnorm_LDFLAGS = -static
nodist_EXTRA_examples_allreduce_rmsnorm_SOURCES = dummy.cc
examples_halo_device_SOURCES =
examples_halo_device_LDADD = examples/halo_device.lo librondo.la $(CUDA_LIBS)
examples_halo_device_LDFLAGS = -static
nodist_EXTRA_examples_halo_device_SOURCES = dummy.cc
if HAVE_MPI
cuda_examples_built += examples/graph.mpi
endif
examples_devices_SOURCES = examples/devices.c
examples_devices_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CFLAGS)
examples_devices_LDADD = librondo.la $(CUDA_LIBS)
examples_devices_LDFLAGS = -static
examples_graph_mpi_SOURCES = examples/graph.c
examples_graph_mpi_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS) $(CUDA_CFLAGS)
examples_graph_mpi_LDADD = librondo.la $(MPI_LIBS) $(CUDA_LIBS)
examples_graph_mpi_LDFLAGS = -static
gpu_cppflags = $(AM_CPPFLAGS) $(CUDA_CFLAGS)
gpu_ldadd = libtest_parts.la librondo.la $(CUDA_LIBS) -lm
test_gpu_lengths_SOURCES = test/gpu/lengths.c test/gpu/device.c test/gpu/device.h
test_gpu_lengths_CPPFLAGS = $(gpu_cppflags)
test_gpu_lengths_LDADD = $(gpu_ldadd)
test_gpu_lengths_LDFLAGS = -static
test_gpu_verdicts_SOURCES = test/gpu/verdicts.c test/gpu/device.c test/gpu/device.h
test_gpu_verdicts_CPPFLAGS = $(gpu_cppflags)
test_gpu_verdicts_LDADD = $(gpu_ldadd)
test_gpu_verdicts_LDFLAGS = -static
test_gpu_signature_SOURCES = test/gpu/signature.c test/gpu/device.c test/gpu/device.h
test_gpu_signature_CPPFLAGS = $(gpu_cppflags)
test_gpu_signature_LDADD = $(gpu_ldadd)
test_gpu_signature_LDFLAGS = -static
test_gpu_copy_engine_SOURCES = test/gpu/copy_engine.c test/gpu/device.c test/gpu/device.h
test_gpu_copy_engine_CPPFLAGS = $(gpu_cppflags)
test_gpu_copy_engine_LDADD = $(gpu_ldadd)
test_gpu_copy_engine_LDFLAGS = -static
test_gpu_staging_SOURCES = test/gpu/staging.c test/gpu/device.c test/gpu/device.h
test_gpu_staging_CPPFLAGS = $(gpu_cppflags)
test_gpu_staging_LDADD = $(gpu_ldadd)
test_gpu_staging_LDFLAGS = -static
test_gpu_gdr_SOURCES = test/gpu/gdr.c test/gpu/device.c test/gpu/device.h
test_gpu_gdr_CPPFLAGS = $(gpu_cppflags)
test_gpu_gdr_LDADD = $(gpu_ldadd)
test_gpu_gdr_LDFLAGS = -static
test_gpu_matrix_SOURCES = test/gpu/matrix.c test/gpu/device.c test/gpu/device.h
test_gpu_matrix_CPPFLAGS = $(gpu_cppflags)
test_gpu_matrix_LDADD = $(gpu_ldadd)
test_gpu_matrix_LDFLAGS = -static
test_gpu_mixed_SOURCES = test/gpu/mixed.c test/gpu/device.c test/gpu/device.h
test_gpu_mixed_CPPFLAGS = $(gpu_cppflags)
test_gpu_mixed_LDADD = $(gpu_ldadd)
test_gpu_mixed_LDFLAGS = -static
test_gpu_narrow_SOURCES = test/gpu/narrow.c test/gpu/device.c test/gpu/device.h
test_gpu_narrow_CPPFLAGS = $(gpu_cppflags)
test_gpu_narrow_LDADD = $(gpu_ldadd)
test_gpu_narrow_LDFLAGS = -static
test_gpu_onesided_SOURCES = test/gpu/onesided.c test/gpu/device.c test/gpu/device.h \
	test/gpu/litmus_options.h
test_gpu_onesided_CPPFLAGS = $(gpu_cppflags)
test_gpu_onesided_LDADD = $(gpu_ldadd)
test_gpu_onesided_LDFLAGS = -static
test_gpu_life_SOURCES = test/gpu/life.c test/gpu/life.h test/gpu/life_beside.c test/gpu/device.c test/gpu/device.h
test_gpu_life_CPPFLAGS = $(gpu_cppflags)
test_gpu_life_LDADD = $(gpu_ldadd)
test_gpu_life_LDFLAGS = -static
test_gpu_fused_SOURCES = test/gpu/fused.c test/gpu/device.c test/gpu/device.h
test_gpu_fused_CPPFLAGS = $(gpu_cppflags)
test_gpu_fused_LDADD = $(gpu_ldadd)
test_gpu_fused_LDFLAGS = -static
test_gpu_grow_SOURCES = test/gpu/grow.c test/gpu/device.c test/gpu/device.h
test_gpu_grow_CPPFLAGS = $(gpu_cppflags)
test_gpu_grow_LDADD = $(gpu_ldadd)
test_gpu_grow_LDFLAGS = -static
test_gpu_long_groups_SOURCES = test/gpu/long_groups.c test/gpu/device.c test/gpu/device.h
test_gpu_long_groups_CPPFLAGS = $(gpu_cppflags)
test_gpu_long_groups_LDADD = $(gpu_ldadd)
test_gpu_long_groups_LDFLAGS = -static
test_gpu_sanitizer_planted_SOURCES = test/gpu/sanitizer_planted.c
test_gpu_sanitizer_planted_CPPFLAGS = $(gpu_cppflags)
test_gpu_sanitizer_planted_LDADD = $(CUDA_LIBS)
test_gpu_registered_SOURCES = test/gpu/registered.c test/gpu/device.c test/gpu/device.h
test_gpu_registered_CPPFLAGS = $(gpu_cppflags)
test_gpu_registered_LDADD = $(gpu_ldadd)
test_gpu_registered_LDFLAGS = -static
test_gpu_rails_SOURCES = test/gpu/rails.c test/gpu/device.c test/gpu/device.h
test_gpu_rails_CPPFLAGS = $(gpu_cppflags)
test_gpu_rails_LDADD = $(gpu_ldadd)
test_gpu_rails_LDFLAGS = -static
test_gpu_rounds_SOURCES = test/gpu/rounds.c test/gpu/device.c test/gpu/device.h
test_gpu_rounds_CPPFLAGS = $(gpu_cppflags)
test_gpu_rounds_LDADD = $(gpu_ldadd)
test_gpu_rounds_LDFLAGS = -static
test_gpu_programs_SOURCES = test/gpu/programs.c test/gpu/device.c test/gpu/device.h
test_gpu_programs_CPPFLAGS = $(gpu_cppflags)
test_gpu_programs_LDADD = $(gpu_ldadd)
test_gpu_programs_LDFLAGS = -static
test_gpu_shim_SOURCES = $(shim_sources) test/gpu/device.c test/gpu/device.h
test_gpu_shim_CPPFLAGS = $(gpu_cppflags)
test_gpu_shim_LDADD = libnccl_parts.la $(gpu_ldadd)
test_gpu_shim_LDFLAGS = -static
test_gpu_force_next_SOURCES = test/gpu/force_next.c test/gpu/device.c test/gpu/device.h
test_gpu_force_next_CPPFLAGS = $(gpu_cppflags)
test_gpu_force_next_LDADD = $(gpu_ldadd)
test_gpu_force_next_LDFLAGS = -static
test_gpu_launch_event_SOURCES = test/gpu/launch_event.c test/gpu/device.c test/gpu/device.h
test_gpu_launch_event_CPPFLAGS = $(gpu_cppflags)
test_gpu_launch_event_LDADD = $(gpu_ldadd)
test_gpu_launch_event_LDFLAGS = -static
test_gpu_suspend_SOURCES = test/gpu/suspend.c test/gpu/device.c test/gpu/device.h test/sim/poor.h
test_gpu_suspend_CPPFLAGS = $(gpu_cppflags)
test_gpu_suspend_LDADD = $(gpu_ldadd)
test_gpu_suspend_LDFLAGS = -static
test_gpu_user_kernels_SOURCES = test/gpu/user_kernels.c test/gpu/device.c test/gpu/device.h
test_gpu_user_kernels_CPPFLAGS = $(gpu_cppflags)
test_gpu_user_kernels_LDADD = test/gpu/device_kernels.lo $(gpu_ldadd)
test_gpu_user_kernels_LDFLAGS = -static
test/gpu/device_kernels.lo: test/gpu/device_kernels.cu $(device_header)
	$(AM_V_GEN)$(MKDIR_P) test/gpu && $(NVCOMPILE) -I$(top_srcdir)/test -c -o $@ $<
EXTRA_DIST += test/gpu/check.sh

# Tests for GPUs with kernels that are late and out of order (test/delays/gpu.cuh), which are compiled only for them:
# `make gpu-delays`, or `make install-gpu-delays` beside install-gpu-tests, and then check-gpu --part delays.
gpu_delays = \
	test/gpu/delayed/matrix \
	test/gpu/delayed/programs \
	test/gpu/delayed/registered
EXTRA_PROGRAMS += $(gpu_delays)
EXTRA_LTLIBRARIES = librondo_kernels_delayed.la
librondo_kernels_delayed_la_SOURCES = \
	lib/kernels/variants.c \
	lib/kernels/launch.c \
	lib/kernels/program_bytes.c \
	test/delays/load.c \
	test/delays/read.c
librondo_kernels_delayed_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CFLAGS)
librondo_kernels_delayed_la_LIBADD = $(delayed_kernels)
librondo_kernels_delayed_la_DEPENDENCIES = $(delayed_kernels)
delayed_kernels = $(kernel_sources:lib/kernels/%.cu=test/gpu/delayed/%.lo)
$(delayed_kernels): kernel_delays = -I$(top_srcdir)/test/delays
$(delayed_kernels): test/gpu/delayed/%.lo: lib/kernels/%.cu $(kernel_headers) $(delays_headers)
	$(AM_V_GEN)$(MKDIR_P) test/gpu/delayed && $(NVCOMPILE) -c -o $@ $<
gpu_delays_ldadd = libtest_parts.la librondo_core.la librondo_kernels_delayed.la $(CUDA_LIBS) -lm
gpu_delays_ldflags = $(AM_LDFLAGS) -static -Wl,--wrap=rd_kernel_load
test_gpu_delayed_matrix_SOURCES = test/gpu/matrix.c test/gpu/device.c test/gpu/device.h
test_gpu_delayed_matrix_CPPFLAGS = $(gpu_cppflags)
test_gpu_delayed_matrix_LDADD = $(gpu_delays_ldadd)
test_gpu_delayed_matrix_LDFLAGS = $(gpu_delays_ldflags)
test_gpu_delayed_programs_SOURCES = test/gpu/programs.c test/gpu/device.c test/gpu/device.h
test_gpu_delayed_programs_CPPFLAGS = $(gpu_cppflags)
test_gpu_delayed_programs_LDADD = $(gpu_delays_ldadd)
test_gpu_delayed_programs_LDFLAGS = $(gpu_delays_ldflags)
test_gpu_delayed_registered_SOURCES = test/gpu/registered.c test/gpu/device.c test/gpu/device.h
test_gpu_delayed_registered_CPPFLAGS = $(gpu_cppflags)
test_gpu_delayed_registered_LDADD = $(gpu_delays_ldadd)
test_gpu_delayed_registered_LDFLAGS = $(gpu_delays_ldflags)

if HAVE_CUDA
check-gpu: libtest_parts.la $(gpu_tests) $(cuda_examples_built)
	$(SHELL) $(srcdir)/test/gpu/check.sh --programs test/gpu $(GPU_TEST_OPTIONS)
	examples/devices
install-gpu-tests: libtest_parts.la $(gpu_tests) $(device_examples)
	$(MKDIR_P) $(DESTDIR)$(pkglibexecdir)
	$(INSTALL_PROGRAM) $(gpu_tests) $(device_examples) $(DESTDIR)$(pkglibexecdir)
	$(INSTALL_SCRIPT) $(srcdir)/test/gpu/check.sh $(DESTDIR)$(pkglibexecdir)/check-gpu
gpu-delays: $(gpu_delays)
install-gpu-delays: $(gpu_delays)
	$(MKDIR_P) $(DESTDIR)$(pkglibexecdir)/delayed
	$(INSTALL_PROGRAM) $(gpu_delays) $(DESTDIR)$(pkglibexecdir)/delayed
else
check-gpu install-gpu-tests gpu-delays install-gpu-delays:
	@echo "built without CUDA: there are no tests for GPUs"; exit 77
endif
.PHONY: check-gpu install-gpu-tests gpu-delays install-gpu-delays
