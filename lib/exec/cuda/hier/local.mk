# Layer 8: operations between nodes whose ranks share windows inside each.
if HAVE_CUDA
librondo_core_la_SOURCES += \
	lib/exec/cuda/hier/hier_run.c \
	lib/exec/cuda/hier/node_comm.c
endif
