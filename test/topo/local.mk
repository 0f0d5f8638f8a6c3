check_PROGRAMS += \
	test/topo/gpu \
	test/topo/locality \
	test/topo/read
if HAVE_EXPAT
check_PROGRAMS += test/topo/channels test/topo/graph test/topo/pack test/topo/rings
endif
test_topo_channels_SOURCES = test/topo/channels.c test/topo/machines.h
test_topo_graph_SOURCES = test/topo/graph.c test/topo/machines.h test/topo/random_machine.h
test_topo_pack_SOURCES = test/topo/machines.h test/topo/pack.c test/topo/random_machine.h
test_topo_gpu_SOURCES = test/topo/gpu.c test/util/nvml_played.c test/util/nvml_played.h
test_topo_gpu_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dlopen -Wl,--wrap=dlsym
test_topo_locality_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=sched_getaffinity

script_tests += \
	test/topo/choices.sh

# Recorded machines, and what is chosen on them.
EXTRA_DIST += \
	test/topo/a100-2x8.choices \
	test/topo/a100-2x8.gpus \
	test/topo/a100-8.choices \
	test/topo/a100-8.gpus \
	test/topo/a100-pcie-4.choices \
	test/topo/a100-pcie-4.gpus \
	test/topo/four-numa.xml \
	test/topo/h200-2.choices \
	test/topo/h200-2.gpus \
	test/topo/h200-8.choices \
	test/topo/h200-8.gpus \
	test/topo/one.choices \
	test/topo/one.gpus \
	test/topo/small-arm.xml \
	test/topo/two-packages.xml
