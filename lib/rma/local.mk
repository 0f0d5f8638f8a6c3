# Layer 8: one-sided operations.
librondo_core_la_SOURCES += \
	lib/rma/rma.c \
	lib/rma/rma.h \
	lib/rma/rma_int.h \
	lib/rma/rma_local.c \
	lib/rma/rma_message.c \
	lib/rma/rma_op.c \
	lib/rma/rma_reply.c \
	lib/rma/rma_serve.c
