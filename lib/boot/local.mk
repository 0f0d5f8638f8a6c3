# Layer 1: how ranks find each other, and how they learn that one is gone.
librondo_core_la_SOURCES += \
	lib/boot/agree_shrink.c \
	lib/boot/agree_shrink.h \
	lib/boot/agree_shrink_lead.c \
	lib/boot/allgather.c \
	lib/boot/ask.c \
	lib/boot/auth.c \
	lib/boot/auth.h \
	lib/boot/boot.c \
	lib/boot/boot.h \
	lib/boot/boot_int.h \
	lib/boot/conceal.c \
	lib/boot/deaths.c \
	lib/boot/dial.c \
	lib/boot/dial.h \
	lib/boot/id.c \
	lib/boot/id.h \
	lib/boot/join.c \
	lib/boot/join_int.h \
	lib/boot/join_tell.c \
	lib/boot/leave.c \
	lib/boot/lifeline.c \
	lib/boot/listener.c \
	lib/boot/listener.h \
	lib/boot/meet.c \
	lib/boot/names.c \
	lib/boot/registry.c \
	lib/boot/registry.h \
	lib/boot/rendezvous.c \
	lib/boot/rendezvous.h \
	lib/boot/roots.c \
	lib/boot/roots.h \
	lib/boot/serving.c \
	lib/boot/session.c \
	lib/boot/session.h \
	lib/boot/sock.c \
	lib/boot/sock.h
