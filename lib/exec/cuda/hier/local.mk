# Layer 7: operations between nodes whose ranks share windows inside each.
if HAVE_CUDA
librondo_core_la_SOURCES += \
	lib/exec/cuda/hier/node_comm.c \
	lib/exec/cuda/hier/rail.c \
	lib/exec/cuda/hier/rail.h \
	lib/exec/cuda/hier/rail_blocks.c \
	lib/exec/cuda/hier/rail_ranges.c \
	lib/exec/cuda/hier/rail_vectors.c
endif
