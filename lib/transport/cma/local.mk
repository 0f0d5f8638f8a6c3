# Layer 3: reading a peer's memory by process_vm_readv.
librondo_core_la_SOURCES += \
	lib/transport/cma/cma.c \
	lib/transport/cma/cma.h
