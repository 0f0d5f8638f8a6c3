# Layer 4: messages between nodes by a net plugin that was made for NCCL, loaded when it is needed (plug_load.c).
librondo_core_la_SOURCES += \
	lib/netplugin/coll_abi.h \
	lib/netplugin/coll_connect.c \
	lib/netplugin/coll_int.h \
	lib/netplugin/coll_load.c \
	lib/netplugin/coll_load.h \
	lib/netplugin/coll_switch.c \
	lib/netplugin/coll_switch.h \
	lib/netplugin/netplugin.h \
	lib/netplugin/plug_abi.h \
	lib/netplugin/plug_calls.c \
	lib/netplugin/plug_connect.c \
	lib/netplugin/plug_leave.c \
	lib/netplugin/plug_load.c \
	lib/netplugin/plug_load.h \
	lib/netplugin/plug_net.c \
	lib/netplugin/plug_receive.c \
	lib/netplugin/plug_search.c \
	lib/netplugin/plug_search.h \
	lib/netplugin/plug_send.c \
	lib/netplugin/transport_plugin.h
