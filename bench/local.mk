# rondo-perf sees what a user sees: the public headers and librondo.
rondo_perf_SOURCES = \
	bench/buffers.c \
	bench/launch_fork.c \
	bench/machine.c \
	bench/numbers.c \
	bench/operations.c \
	bench/options.c \
	bench/output_json.c \
	bench/output_nccl.c \
	bench/output_osu.c \
	bench/output_table.c \
	bench/perf.c \
	bench/peer_nccl.c \
	bench/perf.h \
	bench/plot.c \
	bench/run.c \
	bench/special.c \
	bench/statistics.c \
	bench/timing.c \
	$(chart_files) \
	tools/number.c \
	tools/number.h \
	tools/progress.c \
	tools/progress.h
rondo_perf_CPPFLAGS = $(AM_CPPFLAGS) $(CAIRO_CFLAGS) -I$(top_srcdir)
rondo_perf_LDADD = librondo.la $(CAIRO_LIBS) -lm -ldl
if HAVE_MPI
rondo_perf_SOURCES += \
	bench/launch_mpi.c \
	bench/mpi_types.h \
	bench/peer_mpi.c \
	tools/launched.h
rondo_perf_CPPFLAGS += $(MPI_CFLAGS)
rondo_perf_LDADD += $(MPI_LIBS)
else
rondo_perf_SOURCES += \
	bench/peer_none.c
endif

if HAVE_CUDA
rondo_perf_SOURCES += \
	bench/device_cuda.c
rondo_perf_CPPFLAGS += $(CUDA_CFLAGS)
rondo_perf_LDADD += $(CUDA_LIBS)
else
rondo_perf_SOURCES += \
	bench/device_none.c
endif
