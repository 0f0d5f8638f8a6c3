script_tests += \
	test/tools/info.sh
