# libnccl.so.2: a client of librondo's. Where it is moved to with librondo, it finds it one folder above.
nccllibdir = $(libdir)/rondo
nccllib_LTLIBRARIES = libnccl.la
noinst_LTLIBRARIES += libnccl_parts.la
libnccl_parts_la_SOURCES = \
	lib/nccl/bounce.c \
	lib/nccl/communicators.c \
	lib/nccl/conf_file.c \
	lib/nccl/conf_file.h \
	lib/nccl/config.c \
	lib/nccl/derive.c \
	lib/nccl/device.c \
	lib/nccl/group.c \
	lib/nccl/ib_ports.c \
	lib/nccl/interfaces.c \
	lib/nccl/later.h \
	lib/nccl/lists.c \
	lib/nccl/lists.h \
	lib/nccl/log.c \
	lib/nccl/memory.c \
	lib/nccl/number.c \
	lib/nccl/onesided.c \
	lib/nccl/operations.c \
	lib/nccl/params.c \
	lib/nccl/per_call.c \
	lib/nccl/properties.c \
	lib/nccl/redop.c \
	lib/nccl/refused.c \
	lib/nccl/selection.c \
	lib/nccl/selection.h \
	lib/nccl/settings.c \
	lib/nccl/shim.h \
	lib/nccl/table.c \
	lib/nccl/table.h \
	lib/nccl/tuner.c \
	lib/nccl/tuner.h \
	lib/nccl/tuner_abi.h \
	lib/nccl/tuner_load.c \
	lib/nccl/tuner_table.c
libnccl_la_SOURCES = \
	lib/base/fd.c \
	lib/base/fd_write.c \
	lib/base/file_name.c \
	lib/base/intern.c \
	lib/base/plugin_open.c \
	lib/base/word_list.c
libnccl_la_LIBADD = libnccl_parts.la librondo.la
libnccl_la_LDFLAGS = -shared -Wl,-Bsymbolic-functions -version-info 2:0:0 -no-undefined $(LINK_DEFS) -pthread -Wl,-rpath,'$$ORIGIN/..'
