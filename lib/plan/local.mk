# Layer 5: which algorithm serves a call, and the plan that runs it.
librondo_core_la_SOURCES += \
	lib/plan/board_plan.c \
	lib/plan/board_plan.h \
	lib/plan/call.h \
	lib/plan/candidates.c \
	lib/plan/candidates.h \
	lib/plan/choose.c \
	lib/plan/choose.h \
	lib/plan/chunk_map.c \
	lib/plan/chunk_map.h \
	lib/plan/flat.c \
	lib/plan/flat.h \
	lib/plan/force.c \
	lib/plan/force.h \
	lib/plan/forced_between.c \
	lib/plan/plan.c \
	lib/plan/plan.h \
	lib/plan/plan_print.c \
	lib/plan/tuner.c \
	lib/plan/tuner.h \
	lib/plan/zcopy.c \
	lib/plan/zcopy.h
