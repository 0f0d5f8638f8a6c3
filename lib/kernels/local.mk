# Layer 6: the executor on GPUs.
# The host's part is a library of its own, so that tests may bring other kernels.
if HAVE_CUDA
noinst_LTLIBRARIES += librondo_kernels.la
librondo_kernels_la_SOURCES = \
	lib/kernels/variants.c \
	lib/kernels/launch.c \
	lib/kernels/program_bytes.c \
	lib/kernels/program_bytes.h \
	$(kernel_headers)
librondo_kernels_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CFLAGS)
librondo_kernels_la_LIBADD = $(kernel_sources:.cu=.lo)
librondo_kernels_la_DEPENDENCIES = $(kernel_sources:.cu=.lo)
cuda_library = librondo_kernels.la
cuda_parts = $(cuda_library) $(CUDA_LIBS)
else
cuda_library =
cuda_parts =
endif

kernel_sources = \
	lib/kernels/single.cu \
	lib/kernels/chain.cu \
	lib/kernels/oneshot.cu \
	lib/kernels/fused.cu \
	lib/kernels/gdr.cu \
	lib/kernels/program.cu \
	lib/kernels/ring.cu \
	lib/kernels/twoshot_rooted.cu \
	lib/kernels/proto_simple.cu \
	lib/kernels/p2p_slices.cu \
	lib/kernels/twoshot.cu
kernel_headers = \
	lib/kernels/access.cuh \
	lib/kernels/single.cuh \
	lib/kernels/inline.cuh \
	lib/kernels/chain.cuh \
	lib/kernels/proto.cuh \
	lib/kernels/epoch.cuh \
	lib/kernels/fifo.cuh \
	lib/kernels/launch.h \
	lib/kernels/host_words.h \
	lib/kernels/barrier.cuh \
	lib/kernels/p2p.cuh \
	lib/kernels/mixed.cuh \
	lib/kernels/onesided.cuh \
	lib/kernels/arith.cuh \
	lib/kernels/arith_any.cuh \
	lib/kernels/arith_wide.cuh \
	lib/kernels/oneshot.cuh \
	lib/kernels/fused.cuh \
	lib/kernels/fused_chain.cuh \
	lib/kernels/gdr.cuh \
	lib/kernels/gdr.h \
	lib/kernels/program.cuh \
	lib/kernels/ptx/gpu.cuh \
	lib/kernels/ring.cuh \
	lib/kernels/twoshot_rooted.cuh \
	lib/kernels/rows.cuh \
	lib/kernels/proto_simple.cuh \
	lib/kernels/signals.h \
	lib/kernels/slices.cuh \
	lib/kernels/proxy.cuh \
	lib/kernels/p2p_slices.cuh \
	lib/kernels/table.h \
	lib/kernels/twoshot.cuh \
	lib/kernels/wait.cuh \
	lib/kernels/work.h
EXTRA_DIST += $(kernel_sources) $(kernel_headers) test/sim/gpu.cuh

# nvcc under libtool: its own -fPIC alone is understood.
NVCOMPILE = $(LIBTOOL) $(AM_V_lt) --tag=CC $(AM_LIBTOOLFLAGS) --mode=compile $(NVCC) $(NVCC_ARCH) $(DEFS) \
	-I. -I$(top_srcdir)/lib $(kernel_delays) -I$(top_srcdir)/lib/kernels/ptx -std=c++17 -fmad=false -O3 -prefer-non-pic \
	-Xcompiler=-fPIC,-fvisibility=hidden,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics
$(kernel_sources:.cu=.lo): lib/kernels/%.lo: lib/kernels/%.cu $(kernel_headers)
	$(AM_V_GEN)$(MKDIR_P) lib/kernels && { $(NVCOMPILE) -Xptxas=-v -c -o $@ $< > $(@:.lo=.ptxas) 2>&1 || \
	{ cat $(@:.lo=.ptxas); rm -f $(@:.lo=.ptxas); false; }; }
CLEANFILES += $(kernel_sources:.cu=.ptxas) \
	test/sim/delayed/*.lo test/sim/delayed/*.o test/gpu/delayed/*.lo test/gpu/delayed/*.o \
	test/sim/raced/*.lo test/sim/raced/*.o
