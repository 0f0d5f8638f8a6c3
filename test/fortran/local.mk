script_tests += \
	test/fortran/names.sh
fortran_script_tests = \
	test/fortran/install.sh
EXTRA_DIST += \
	test/fortran/operations.inc
