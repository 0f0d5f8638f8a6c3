# Layer 2: what other people's tools are shown of each call: profiler plugins of NCCL's, and ranges of NVTX.
librondo_core_la_SOURCES += \
	lib/profile/nvtx.h \
	lib/profile/plugin.c \
	lib/profile/plugin.h \
	lib/profile/plugin_abi.h \
	lib/profile/plugin_describe.c \
	lib/profile/plugin_describe.h \
	lib/profile/plugin_words.c \
	lib/profile/profile.c \
	lib/profile/profile.h
if HAVE_NVTX
librondo_core_la_SOURCES += lib/profile/nvtx.c
else
librondo_core_la_SOURCES += lib/profile/nvtx_none.c
endif
