# Layer 4: messages between nodes by a net plugin that was made for NCCL, loaded when it is needed (plug_load.c).
librondo_core_la_SOURCES += \
	lib/netplugin/netplugin.h \
	lib/netplugin/plug_abi.h \
	lib/netplugin/plug_calls.c \
	lib/netplugin/plug_connect.c \
	lib/netplugin/plug_leave.c \
	lib/netplugin/plug_load.c \
	lib/netplugin/plug_load.h \
	lib/netplugin/plug_net.c \
	lib/netplugin/plug_receive.c \
	lib/netplugin/plug_send.c \
	lib/netplugin/transport_plugin.h
