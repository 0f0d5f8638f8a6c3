# Real clients of libnccl.so.2, for machines that have them and GPUs.
EXTRA_DIST += \
	test/clients/checks.py \
	test/clients/cupy_nccl.py \
	test/clients/jax_devices.py \
	test/clients/nccl_program.c \
	test/clients/run.sh \
	test/clients/torch_c10d.py \
	test/clients/torch_one_process.py \
	test/clients/torch_suite.py \
	test/clients/torch_train.py \
	test/clients/torch_trouble.py
