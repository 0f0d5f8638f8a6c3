# Layer 8: the host's side of GPUs.
librondo_core_la_SOURCES += \
	lib/exec/cuda/cuda.h

if HAVE_CUDA
librondo_core_la_SOURCES += \
	lib/exec/cuda/buffer.c \
	lib/exec/cuda/collective.c \
	lib/exec/cuda/copy_engine.c \
	lib/exec/cuda/copy_engine.h \
	lib/exec/cuda/copy_over.c \
	lib/exec/cuda/copy_staging.c \
	lib/exec/cuda/cuda_group.c \
	lib/exec/cuda/cuda_int.h \
	lib/exec/cuda/cuda_print.c \
	lib/exec/cuda/device.c \
	lib/exec/cuda/device_late.c \
	lib/exec/cuda/graveyard.c \
	lib/exec/cuda/graveyard.h \
	lib/exec/cuda/health_check.c \
	lib/exec/cuda/init.c \
	lib/exec/cuda/kernel_choose.c \
	lib/exec/cuda/kernel_choose.h \
	lib/exec/cuda/occupancy.c \
	lib/exec/cuda/fused.c \
	lib/exec/cuda/order.c \
	lib/exec/cuda/ring_order.c \
	lib/exec/cuda/p2p.c \
	lib/exec/cuda/p2p.h \
	lib/exec/cuda/p2p_blocks.c \
	lib/exec/cuda/program_cache.c \
	lib/exec/cuda/register.c \
	lib/exec/cuda/stall.c \
	lib/exec/cuda/stream_access.c \
	lib/exec/cuda/suspend_device.c \
	lib/exec/cuda/user.h \
	lib/exec/cuda/user_device.c \
	lib/exec/cuda/user_window.c \
	lib/exec/cuda/window.c \
	lib/exec/cuda/window_host.c \
	lib/exec/cuda/window_import.c \
	lib/exec/cuda/words.c
librondo_core_la_CPPFLAGS += $(CUDA_CFLAGS)
else
librondo_core_la_SOURCES += \
	lib/exec/cuda/cuda_none.c
endif
