# Layer 3: what transports between nodes have in common, whatever library carries their messages.
librondo_core_la_SOURCES += \
	lib/transport/network/net_conns.c \
	lib/transport/network/net_fork.c \
	lib/transport/network/net_fork.h \
	lib/transport/network/net_leave.c \
	lib/transport/network/net_load.c \
	lib/transport/network/net_load.h \
	lib/transport/network/net_peers.c \
	lib/transport/network/net_question.c \
	lib/transport/network/net_receive.c \
	lib/transport/network/net_say.c \
	lib/transport/network/net_wireup.c \
	lib/transport/network/network.h
