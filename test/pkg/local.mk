# What is installed, packed and shipped. Builds of other kinds are in build_tests (test/local.mk).
script_tests += \
	test/pkg/contrib.sh \
	test/pkg/device_header.sh \
	test/pkg/exports.sh \
	test/pkg/header.sh \
	test/pkg/install.sh \
	test/pkg/links.sh \
	test/pkg/manpages.sh \
	test/pkg/mpis.sh \
	test/pkg/readme.sh \
	test/pkg/sources_listed.sh \
	test/pkg/wheel.sh

# One after the other, however many tests run at a time: each installs from this build, and libtool links in it again.
test/pkg/wheel.log: test/pkg/install.log
test/fortran/install.log: test/pkg/wheel.log

EXTRA_DIST += test/pkg/installed.sh test/pkg/sanitizers_find.sh
if SANITIZING
check_PROGRAMS += test/pkg/sanitizer_planted
endif
test_pkg_sanitizer_planted_LDADD = librondo.la
