# Layer 6: the executor on host memory.
librondo_core_la_SOURCES += \
	lib/exec/host/cma_step.c \
	lib/exec/host/cma_step.h \
	lib/exec/host/flat_walk.h \
	lib/exec/host/host_copy.c \
	lib/exec/host/host_copy.h \
	lib/exec/host/nan_scan.c \
	lib/exec/host/nan_scan.h \
	lib/exec/host/nt_store.c \
	lib/exec/host/nt_store.h \
	lib/exec/host/reduce.c \
	lib/exec/host/reduce.h \
	lib/exec/host/reduce_avx2.c \
	lib/exec/host/reduce_avx512.c \
	lib/exec/host/reduce_cpu.c \
	lib/exec/host/reduce_cpu.h \
	lib/exec/host/reduce_f16c.h \
	lib/exec/host/reduce_isa.h \
	lib/exec/host/reduce_kernels.h \
	lib/exec/host/reduce_loop.h \
	lib/exec/host/reduce_pair.c \
	lib/exec/host/reduce_plain.c \
	lib/exec/host/reduce_rare.c \
	lib/exec/host/reduce_scalar.c \
	lib/exec/host/reduce_scale.h \
	lib/exec/host/reduce_vec.h \
	lib/exec/host/run.c \
	lib/exec/host/run.h \
	lib/exec/host/run_board.c \
	lib/exec/host/run_board.h \
	lib/exec/host/run_flat.c \
	lib/exec/host/run_flat.h \
	lib/exec/host/run_message.c \
	lib/exec/host/run_message.h \
	lib/exec/host/run_slots.c \
	lib/exec/host/run_slots.h \
	lib/exec/host/turn.h
