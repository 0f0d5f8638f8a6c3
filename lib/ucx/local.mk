# Layer 4: messages between nodes, over UCX, which is loaded when it is needed (ucx_load.c).
if HAVE_UCX
librondo_core_la_SOURCES += \
	lib/ucx/context.c \
	lib/ucx/disconnect.c \
	lib/ucx/endpoint.c \
	lib/ucx/exchange.c \
	lib/ucx/net.c \
	lib/ucx/question.c \
	lib/ucx/receive.c \
	lib/ucx/rkey.c \
	lib/ucx/rndv.c \
	lib/ucx/transport_ucx.h \
	lib/ucx/ucx.h \
	lib/ucx/ucx_choose.c \
	lib/ucx/ucx_config.c \
	lib/ucx/ucx_gdr.c \
	lib/ucx/ucx_gdr.h \
	lib/ucx/ucx_guard.c \
	lib/ucx/ucx_linger.c \
	lib/ucx/ucx_load.c \
	lib/ucx/ucx_load.h \
	lib/ucx/wireup.c
librondo_core_la_CPPFLAGS += -DRD_HAVE_UCX $(UCX_CFLAGS)
endif
