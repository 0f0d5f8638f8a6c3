# Layer 8: GPU data through proxies, between nodes.
if HAVE_CUDA
librondo_core_la_SOURCES += \
	lib/exec/cuda/proxy/gdr.c \
	lib/exec/cuda/proxy/gdr_collective.c \
	lib/exec/cuda/proxy/gdr_probe.c \
	lib/exec/cuda/proxy/gdr_queues.c \
	lib/exec/cuda/proxy/inline.c \
	lib/exec/cuda/proxy/p2p_proxy.c \
	lib/exec/cuda/proxy/proxy.c \
	lib/exec/cuda/proxy/proxy.h \
	lib/exec/cuda/proxy/proxy_area.c \
	lib/exec/cuda/proxy/proxy_init.c \
	lib/exec/cuda/proxy/proxy_progress.c \
	lib/exec/cuda/proxy/proxy_task.c \
	lib/exec/cuda/proxy/rcache.c
endif
