check_PROGRAMS += \
	test/sched/check \
	test/sched/compile \
	test/sched/faults \
	test/sched/hier \
	test/sched/large \
	test/sched/once \
	test/sched/phases \
	test/sched/shape \
	test/sched/together \
	test/sched/vtables
model = \
	test/sched/model.c \
	test/sched/model.h \
	test/sched/model_links.c \
	test/sched/model_parts.h \
	test/sched/model_run.c \
	test/sched/model_verify.c
test_sched_check_SOURCES = test/sched/check.c $(model)
test_sched_compile_SOURCES = test/sched/compile.c $(model)
test_sched_faults_SOURCES = test/sched/faults.c $(model)
test_sched_hier_SOURCES = test/sched/hier.c $(model)
test_sched_large_SOURCES = test/sched/large.c $(model)
test_sched_phases_SOURCES = test/sched/phases.c $(model)
test_sched_shape_SOURCES = test/sched/shape.c $(model)
test_sched_together_SOURCES = test/sched/together.c $(model)
test_sched_vtables_SOURCES = test/sched/vtables.c $(model)

script_tests += \
	test/sched/new_algorithm.sh
EXTRA_DIST += \
	test/sched/new_algorithm.mk \
	test/sched/star.c
