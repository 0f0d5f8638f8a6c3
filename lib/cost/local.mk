# Layer 2: what an algorithm takes on this machine.
librondo_core_la_SOURCES += \
	lib/cost/model.c \
	lib/cost/model.h \
	lib/cost/model_gpu.c \
	lib/cost/model_gpu.h \
	lib/cost/prices.c \
	lib/cost/prices.h \
	lib/cost/prices_file.c
