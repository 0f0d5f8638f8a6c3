# Layer 1: steps, programs and the compiler. Pure: no memory of a user, no state, no I/O.
librondo_core_la_SOURCES += \
	lib/sched/algo.h \
	lib/sched/compile.c \
	lib/sched/compose.c \
	lib/sched/list.h \
	lib/sched/mirror.c \
	lib/sched/once.c \
	lib/sched/phases.c \
	lib/sched/phases.h \
	lib/sched/program.h \
	lib/sched/program_print.c \
	lib/sched/shape.c \
	lib/sched/shape.h \
	lib/sched/step.h \
	lib/sched/steps.c \
	lib/sched/visits.c \
	lib/sched/visits.h \
	lib/sched/work.c \
	lib/sched/work.h
