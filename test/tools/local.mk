check_PROGRAMS += \
	test/tools/doctor_find
test_tools_doctor_find_SOURCES = test/tools/doctor_find.c tools/doctor_pair.c tools/doctor_segments.c $(doctor_finders)
test_tools_doctor_find_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tools
script_tests += \
	test/tools/arguments.sh \
	test/tools/doctor_json.sh \
	test/tools/graph_file.sh \
	test/tools/doctor_network.sh \
	test/tools/info.sh \
	test/tools/pictures.sh \
	test/tools/progress.sh
EXTRA_DIST += \
	test/tools/pictures.py
