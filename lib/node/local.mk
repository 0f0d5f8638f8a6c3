# Layer 2: the ranks of one node and the memory that they share.
librondo_core_la_SOURCES += \
	lib/node/agree.c \
	lib/node/agree.h \
	lib/node/fd_pass.c \
	lib/node/fd_pass.h \
	lib/node/locate.c \
	lib/node/node.c \
	lib/node/node.h \
	lib/node/node_map.c \
	lib/node/node_mem.c \
	lib/node/node_mem.h \
	lib/node/rails.c \
	lib/node/rails.h \
	lib/node/team.h
