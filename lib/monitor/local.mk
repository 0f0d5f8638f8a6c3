# Layer 2: what a process is doing, in memory that others may read: the record, and how it leaves the process.
librondo_core_la_SOURCES += \
	lib/monitor/called.c \
	lib/monitor/called.h \
	lib/monitor/dump.c \
	lib/monitor/dump.h \
	lib/monitor/dump_chrome.c \
	lib/monitor/dump_fr.c \
	lib/monitor/dump_fr.h \
	lib/monitor/dump_json.c \
	lib/monitor/held.c \
	lib/monitor/held.h \
	lib/monitor/history.c \
	lib/monitor/history.h \
	lib/monitor/origin.c \
	lib/monitor/origin.h \
	lib/monitor/out.c \
	lib/monitor/out.h \
	lib/monitor/pickle.c \
	lib/monitor/pickle.h \
	lib/monitor/process.c \
	lib/monitor/process.h \
	lib/monitor/process_int.h \
	lib/monitor/ras_socket.c \
	lib/monitor/ras_socket.h \
	lib/monitor/read.c \
	lib/monitor/read.h \
	lib/monitor/record.h \
	lib/monitor/seat.c \
	lib/monitor/seat.h \
	lib/monitor/streams.c \
	lib/monitor/streams.h \
	lib/monitor/ticks.h \
	lib/monitor/verdict.c \
	lib/monitor/verdict.h \
	lib/monitor/view.c \
	lib/monitor/view.h \
	lib/monitor/view_rank.c
