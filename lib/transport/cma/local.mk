# Layer 3: reading and writing a peer's memory by process_vm_readv and process_vm_writev.
librondo_core_la_SOURCES += \
	lib/transport/cma/access.c \
	lib/transport/cma/cma.c \
	lib/transport/cma/cma.h \
	lib/transport/cma/room.c \
	lib/transport/cma/room.h
