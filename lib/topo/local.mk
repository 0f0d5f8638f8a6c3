# Layer 1: what the machine is made of.
librondo_core_la_SOURCES += \
	lib/topo/cheapest.c \
	lib/topo/cheapest.h \
	lib/topo/gpu_ring.c \
	lib/topo/gpu_ring.h \
	lib/topo/graph.c \
	lib/topo/graph.h \
	lib/topo/graph_gpu.c \
	lib/topo/graph_read.c \
	lib/topo/locality.c \
	lib/topo/locality.h \
	lib/topo/machine.c \
	lib/topo/nvml.c \
	lib/topo/nvml.h \
	lib/topo/pack.c \
	lib/topo/pack.h \
	lib/topo/ring_file.c \
	lib/topo/ring_file.h \
	lib/topo/search.c \
	lib/topo/search.h \
	lib/topo/topo.c \
	lib/topo/topo.h \
	lib/topo/topo_gpu.c \
	lib/topo/topo_gpu.h \
	lib/topo/topo_nvml.c \
	lib/topo/topo_write.c \
	lib/topo/topo_write.h \
	lib/topo/xml.c \
	lib/topo/xml.h

if HAVE_HWLOC
librondo_core_la_SOURCES += \
	lib/topo/topo_hwloc.c
librondo_core_la_CPPFLAGS += $(HWLOC_CFLAGS)
librondo_core_la_LIBADD += $(HWLOC_LIBS)
else
librondo_core_la_SOURCES += \
	lib/topo/topo_none.c
endif

# expat's header alone: the library is loaded when a file names it (xml_read.c).
if HAVE_EXPAT
librondo_core_la_SOURCES += \
	lib/topo/xml_read.c
librondo_core_la_CPPFLAGS += $(EXPAT_CFLAGS)
else
librondo_core_la_SOURCES += \
	lib/topo/xml_none.c
endif
