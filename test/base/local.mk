check_PROGRAMS += \
	test/base/env \
	test/base/file_name \
	test/base/fpenv \
	test/base/health \
	test/base/setting \
	test/base/types \
	test/base/version \
	test/base/wait \
	test/base/word_list

test_base_setting_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=strcmp
