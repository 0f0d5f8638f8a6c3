# Layer 9: communicators and their calls.
librondo_core_la_SOURCES += \
	lib/core/background.c \
	lib/core/background.h \
	lib/core/binding.c \
	lib/core/binding.h \
	lib/core/comm.c \
	lib/core/comm.h \
	lib/core/create.c \
	lib/core/dumps.c \
	lib/core/dumps.h \
	lib/core/explain.c \
	lib/core/group.c \
	lib/core/lifetime.c \
	lib/core/lifetime.h \
	lib/core/memory.c \
	lib/core/nan_check.c \
	lib/core/nan_check.h \
	lib/core/on_error.c \
	lib/core/on_error.h \
	lib/core/op.c \
	lib/core/op.h \
	lib/core/records.c \
	lib/core/records.h \
	lib/core/self_messages.c \
	lib/core/self_messages.h \
	lib/core/shown.c \
	lib/core/shown.h \
	lib/core/shrink.c \
	lib/core/shrink.h \
	lib/core/split.c \
	lib/core/status.c \
	lib/core/submit.c \
	lib/core/submit.h \
	lib/core/transports.c \
	lib/core/transports.h
