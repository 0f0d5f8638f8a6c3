# The same for programs that mpirun starts, with 2 and with 4 ranks: test/mpi/NAME.mpi is made of test/mpi/NAME.c.
mpi_tests = \
	test/mpi/exit_fork.mpi \
	test/mpi/random_vs_mpi.mpi
if HAVE_MPI
check_PROGRAMS += $(mpi_tests)
endif
test_mpi_exit_fork_mpi_SOURCES = test/mpi/exit_fork.c
test_mpi_exit_fork_mpi_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
test_mpi_exit_fork_mpi_LDADD = librondo.la $(MPI_LIBS)
test_mpi_random_vs_mpi_mpi_SOURCES = test/mpi/random_vs_mpi.c
test_mpi_random_vs_mpi_mpi_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
test_mpi_random_vs_mpi_mpi_LDADD = libtest.la $(MPI_LIBS)
# The interposer, with each MPI that is here.
if HAVE_MPI
script_tests += \
	test/mpi/interposer_calls.sh \
	test/mpi/interposer_corners.sh
endif
CLEANFILES += test/mpi/built.*/*
EXTRA_DIST += \
	test/mpi/interposer/alone.c \
	test/mpi/interposer/asks.c \
	test/mpi/interposer/before.c \
	test/mpi/interposer/behind.c \
	test/mpi/interposer/common.sh \
	test/mpi/interposer/communicators.c \
	test/mpi/interposer/corner.h \
	test/mpi/interposer/corners.c \
	test/mpi/interposer/corners_buffers.h \
	test/mpi/interposer/corners_chosen.h \
	test/mpi/interposer/corners_progress.h \
	test/mpi/interposer/corners_sums.h \
	test/mpi/interposer/device.c \
	test/mpi/interposer/errors.c \
	test/mpi/interposer/first.c \
	test/mpi/interposer/fortran.F90 \
	test/mpi/interposer/nonblocking.c \
	test/mpi/interposer/opened.c \
	test/mpi/interposer/opening.c \
	test/mpi/interposer/ordered.c \
	test/mpi/interposer/persistent.c \
	test/mpi/interposer/played_cuda.c \
	test/mpi/interposer/played_recv.c \
	test/mpi/interposer/played_revoke.c \
	test/mpi/interposer/played_statuses.c \
	test/mpi/interposer/played_success.c \
	test/mpi/interposer/random.c \
	test/mpi/interposer/revoke.c \
	test/mpi/interposer/sessions.c \
	test/mpi/interposer/threads.c \
	test/mpi/interposer/types.c \
	test/mpi/interposer_calls.sh \
	test/mpi/interposer_corners.sh
