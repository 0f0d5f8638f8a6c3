# Layer 0: errors, settings, types, waits: what every other folder stands on.
librondo_core_la_SOURCES += \
	lib/base/env.c \
	lib/base/env.h \
	lib/base/env_alias.c \
	lib/base/env_alias.h \
	lib/base/error.c \
	lib/base/error.h \
	lib/base/fd.c \
	lib/base/fd.h \
	lib/base/fd_foreign.c \
	lib/base/fd_guard.c \
	lib/base/fork.c \
	lib/base/fork.h \
	lib/base/fpenv.h \
	lib/base/hash.h \
	lib/base/health.c \
	lib/base/health.h \
	lib/base/kernel.h \
	lib/base/narrow.h \
	lib/base/outstanding.c \
	lib/base/outstanding.h \
	lib/base/proto.h \
	lib/base/reducer.h \
	lib/base/result.c \
	lib/base/setting.c \
	lib/base/setting.h \
	lib/base/slot_store.h \
	lib/base/thread.c \
	lib/base/thread.h \
	lib/base/types.c \
	lib/base/types.h \
	lib/base/version.c \
	lib/base/wait.c \
	lib/base/wait.h \
	lib/base/word_list.c \
	lib/base/word_list.h
