# Layer 3: connections between ranks, whatever carries their bytes.
librondo_core_la_SOURCES += \
	lib/transport/announce.h \
	lib/transport/conn.h \
	lib/transport/conns.c \
	lib/transport/conns.h \
	lib/transport/core_dump.c \
	lib/transport/core_dump.h \
	lib/transport/events.c \
	lib/transport/events.h \
	lib/transport/keeper.c \
	lib/transport/keeper.h \
	lib/transport/linger.c \
	lib/transport/linger.h \
	lib/transport/liveness.c \
	lib/transport/liveness.h \
	lib/transport/liveness_int.h \
	lib/transport/meetings.c \
	lib/transport/redial.c \
	lib/transport/switch.h \
	lib/transport/transport.h
