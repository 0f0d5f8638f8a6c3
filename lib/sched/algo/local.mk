# Layer 1: one algorithm a file.
librondo_core_la_SOURCES += \
	lib/sched/algo/algos.c \
	lib/sched/algo/algos.h \
	lib/sched/algo/binomial.c \
	lib/sched/algo/direct.c \
	lib/sched/algo/hier.c \
	lib/sched/algo/hier_blocks.c \
	lib/sched/algo/hier_phases.c \
	lib/sched/algo/hier_phases.h \
	lib/sched/algo/hier_ranges.c \
	lib/sched/algo/hier_vectors.c \
	lib/sched/algo/oneshot.c \
	lib/sched/algo/pat.c \
	lib/sched/algo/rd.c \
	lib/sched/algo/ring.c \
	lib/sched/algo/tree.c \
	lib/sched/algo/twoshot.c
