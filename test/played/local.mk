# Hosts for any test: what a script runs by `play 2 test/api/op_matrix ...` has its ranks on two of them.
EXTRA_PROGRAMS += test/played/play
check_DATA += test/played/play$(EXEEXT)
CLEANFILES += test/played/play$(EXEEXT)
test_played_play_SOURCES = test/played/play.c test/util/enter.h test/util/hosts.c test/util/hosts.h
test_played_play_LDADD =

if HAVE_UCX
check_PROGRAMS += \
	test/played/reset \
	test/played/trials
endif
test_played_reset_LDADD = libtest.la
test_played_reset_SOURCES = test/played/reset.c test/util/enter.h test/util/hosts.c test/util/hosts.h
test_played_trials_LDADD = libtest.la
test_played_trials_SOURCES = test/played/trials.c test/util/enter.h test/util/hosts.c test/util/hosts.h
script_tests += \
	test/played/doctor.sh \
	test/played/mpirun.sh \
	test/played/programs.sh
