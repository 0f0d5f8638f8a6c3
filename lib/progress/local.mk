# Layer 7: tasks, and what makes their progress.
librondo_core_la_SOURCES += \
	lib/progress/backoff.c \
	lib/progress/deadlock.c \
	lib/progress/deadlock.h \
	lib/progress/late.c \
	lib/progress/late.h \
	lib/progress/lengths.c \
	lib/progress/lengths.h \
	lib/progress/limit.c \
	lib/progress/limit.h \
	lib/progress/message.c \
	lib/progress/net_comm.h \
	lib/progress/proxy_threads.c \
	lib/progress/proxy_threads.h \
	lib/progress/queue.c \
	lib/progress/queue.h \
	lib/progress/ring_entry.h \
	lib/progress/signature.c \
	lib/progress/signature.h \
	lib/progress/task.c \
	lib/progress/unlike.c \
	lib/progress/unlike.h
