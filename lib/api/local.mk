# Layer 10: the public entries.
librondo_core_la_SOURCES += \
	lib/api/args.c \
	lib/api/args.h \
	lib/api/collectives.c \
	lib/api/onesided.c \
	lib/api/user_kernels.c \
	lib/api/vcollectives.c
