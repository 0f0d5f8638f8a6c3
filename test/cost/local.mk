check_PROGRAMS += \
	test/cost/model

script_tests += \
	test/cost/tune.sh
