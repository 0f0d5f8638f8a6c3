script_tests += \
	test/kernels/no_spills.sh
