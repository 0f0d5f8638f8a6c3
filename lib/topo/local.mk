# Layer 1: what the machine is made of.
librondo_core_la_SOURCES += \
	lib/topo/nvml.c \
	lib/topo/nvml.h \
	lib/topo/topo.c \
	lib/topo/topo.h \
	lib/topo/topo_gpu.c \
	lib/topo/topo_gpu.h \
	lib/topo/topo_nvml.c

if HAVE_HWLOC
librondo_core_la_SOURCES += \
	lib/topo/topo_hwloc.c
librondo_core_la_CPPFLAGS += $(HWLOC_CFLAGS)
librondo_core_la_LIBADD += $(HWLOC_LIBS)
else
librondo_core_la_SOURCES += \
	lib/topo/topo_none.c
endif
