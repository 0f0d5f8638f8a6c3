# Pictures: rondo-perf and rondo-info draw them.
chart_files = \
	tools/canvas.h \
	tools/chart.c \
	tools/chart.h
if HAVE_CAIRO
chart_files += \
	tools/canvas_cairo.c
else
chart_files += \
	tools/canvas_none.c
endif
# What rondo-info doctor --network makes of its tables, which a test plants.
doctor_finders = \
	tools/doctor_find_blocked.c \
	tools/doctor_find_lost.c \
	tools/doctor_find_setup.c \
	tools/doctor_find_slow.c \
	tools/doctor_nodes.h \
	tools/info.h
# rondo-info asks the rooms themselves.
rondo_info_SOURCES = \
	lib/nccl/table.c \
	lib/nccl/table.h \
	$(doctor_finders) \
	tools/doctor_gpu.c \
	tools/doctor_host.c \
	tools/doctor_matrix.c \
	tools/doctor_net.c \
	tools/doctor_nodes.c \
	tools/doctor_pair.c \
	tools/doctor_pair_process.c \
	tools/doctor_pairs.h \
	tools/doctor_reach.c \
	tools/doctor_segments.c \
	tools/doctor_json.c \
	tools/doctor_json.h \
	tools/doctor_self.c \
	tools/info_doctor.c \
	tools/info_draw.c \
	tools/info_machine.c \
	tools/info_memory.c \
	tools/info_nccl.c \
	tools/info_net.c \
	tools/info_plan.c \
	tools/info_plot.c \
	tools/info_plot.h \
	tools/info_rings.c \
	tools/info_scale.c \
	$(chart_files) \
	tools/interfaces.c \
	tools/interfaces.h \
	tools/launch.c \
	tools/launch.h \
	tools/launch_int.h \
	tools/launch_mpi.c \
	tools/launch_pmix.c \
	tools/launched.h \
	tools/info_topo.c \
	tools/number.c \
	tools/number.h \
	tools/progress.c \
	tools/progress.h \
	tools/rondo-info.c
rondo_info_CPPFLAGS = $(AM_CPPFLAGS) $(SODIUM_CFLAGS) $(CAIRO_CFLAGS)
if HAVE_CUDA
rondo_info_SOURCES += \
	tools/doctor_pairs.c
rondo_info_CPPFLAGS += $(CUDA_CFLAGS)
else
rondo_info_SOURCES += \
	tools/doctor_pairs_none.c
endif
rondo_info_LDADD = librondo_core.la $(cuda_parts) $(CAIRO_LIBS) -lm -ldl
# What reads dumps again.
dump_readers = \
	tools/load.c \
	tools/load.h \
	tools/load_fr.c \
	tools/load_json.c \
	tools/value.c \
	tools/value.h \
	tools/value_json.c \
	tools/value_pickle.c
rondo_ras_SOURCES = \
	$(dump_readers) \
	tools/number.c \
	tools/number.h \
	tools/ras.h \
	tools/ras_analyse.c \
	tools/ras_analysis.h \
	tools/ras_await.c \
	tools/ras_convert.c \
	tools/ras_dump.c \
	tools/ras_event.c \
	tools/ras_event.h \
	tools/ras_file.c \
	tools/ras_find.c \
	tools/ras_host.c \
	tools/ras_interrupt.c \
	tools/ras_metrics.c \
	tools/ras_monitor.c \
	tools/ras_outputs.c \
	tools/ras_stack_proc.c \
	tools/ras_stack_tool.c \
	tools/ras_stacks.c \
	tools/ras_stacks.h \
	tools/ras_status.c \
	tools/ras_top.c \
	tools/ras_who.c \
	tools/rondo-ras.c
rondo_ras_CPPFLAGS = $(AM_CPPFLAGS)
rondo_ras_LDADD = librondo_core.la $(cuda_parts)
rondo_tune_SOURCES = \
	tools/number.c \
	tools/number.h \
	tools/progress.c \
	tools/progress.h \
	tools/rondo-tune.c \
	tools/tune.h \
	tools/tune_check.c \
	tools/tune_cuda.c \
	tools/tune_fit.c \
	tools/tune_times.c
rondo_tune_CPPFLAGS = $(AM_CPPFLAGS) $(SODIUM_CFLAGS)
rondo_tune_LDADD = librondo_core.la $(cuda_parts)
