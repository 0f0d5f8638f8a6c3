# Layer 4: messages between nodes, over libfabric, which is loaded when it is needed (ofi_load.c).
if HAVE_LIBFABRIC
librondo_core_la_SOURCES += \
	lib/ofi/ofi.h \
	lib/ofi/ofi_context.c \
	lib/ofi/ofi_dial.c \
	lib/ofi/ofi_disconnect.c \
	lib/ofi/ofi_exchange.c \
	lib/ofi/ofi_forgotten.c \
	lib/ofi/ofi_load.c \
	lib/ofi/ofi_load.h \
	lib/ofi/ofi_net.c \
	lib/ofi/ofi_provider.c \
	lib/ofi/ofi_receive.c \
	lib/ofi/ofi_send.c \
	lib/ofi/transport_ofi.h
librondo_core_la_CPPFLAGS += -DRD_HAVE_LIBFABRIC $(LIBFABRIC_CFLAGS)
endif
