# Layer 3: messages in the shared memory of a node.
librondo_core_la_SOURCES += \
	lib/transport/shm/board.c \
	lib/transport/shm/board.h \
	lib/transport/shm/ll.h \
	lib/transport/shm/shm.c \
	lib/transport/shm/shm.h \
	lib/transport/shm/slots.h
