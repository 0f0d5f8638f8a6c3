script_tests += \
	test/tools/info.sh \
	test/tools/pictures.sh \
	test/tools/progress.sh
EXTRA_DIST += \
	test/tools/pictures.py
