check_PROGRAMS += \
	test/cost/comma \
	test/cost/model

script_tests += \
	test/cost/tune.sh
EXTRA_DIST += test/cost/xeon-32.times
