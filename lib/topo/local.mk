# Layer 1: what the machine is made of.
librondo_core_la_SOURCES += \
	lib/topo/locality.c \
	lib/topo/locality.h \
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

# Recorded machines, for tools and tests: see machine.c.
noinst_LTLIBRARIES += librondo_machines.la
librondo_machines_la_SOURCES = \
	lib/topo/graph.c \
	lib/topo/graph.h \
	lib/topo/graph_gpu.c \
	lib/topo/graph_read.c \
	lib/topo/machine.c \
	lib/topo/search.c \
	lib/topo/search.h \
	lib/topo/xml.c \
	lib/topo/xml.h
librondo_machines_la_CPPFLAGS = $(AM_CPPFLAGS)
librondo_machines_la_LIBADD =
if HAVE_EXPAT
librondo_machines_la_SOURCES += \
	lib/topo/xml_read.c
librondo_machines_la_CPPFLAGS += $(EXPAT_CFLAGS)
librondo_machines_la_LIBADD += $(EXPAT_LIBS)
else
librondo_machines_la_SOURCES += \
	lib/topo/xml_none.c
endif
