# The examples are tests, too: each checks its own result. The Fortran ones stand beside their C twins.
c_examples = \
	examples/cg.mpi \
	examples/halo.mpi \
	examples/halo_onesided.mpi \
	examples/transpose.mpi
if HAVE_MPI
check_PROGRAMS += $(c_examples)
endif
examples_cg_mpi_SOURCES = examples/cg.c
examples_cg_mpi_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
examples_cg_mpi_LDADD = librondo.la $(MPI_LIBS) -lm
examples_halo_mpi_SOURCES = examples/halo.c
examples_halo_mpi_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
examples_halo_mpi_LDADD = librondo.la $(MPI_LIBS)
examples_halo_onesided_mpi_SOURCES = examples/halo_onesided.c
examples_halo_onesided_mpi_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
examples_halo_onesided_mpi_LDADD = librondo.la $(MPI_LIBS)
examples_transpose_mpi_SOURCES = examples/transpose.c
examples_transpose_mpi_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
examples_transpose_mpi_LDADD = librondo.la $(MPI_LIBS) -lm

fortran_tests = \
	examples/cg-fortran.mpi \
	examples/halo-fortran.mpi \
	examples/transpose-fortran.mpi \
	test/fortran/operations.mpi
if HAVE_MPI_FORTRAN
check_PROGRAMS += $(fortran_tests)
fortran_test_flags = $(FC_WARN) $(FC_MODINC)lib/fortran $(MPI_FCFLAGS)
fortran_test_libs = librondo_fortran_mpi.la librondo_fortran.la librondo.la $(MPI_FCLIBS)
examples_cg_fortran_mpi_SOURCES = examples/cg.f90
examples_cg_fortran_mpi_FCFLAGS = $(fortran_test_flags)
examples_cg_fortran_mpi_LDADD = $(fortran_test_libs)
examples_halo_fortran_mpi_SOURCES = examples/halo.f90
examples_halo_fortran_mpi_FCFLAGS = $(fortran_test_flags)
examples_halo_fortran_mpi_LDADD = $(fortran_test_libs)
examples_transpose_fortran_mpi_SOURCES = examples/transpose.f90
examples_transpose_fortran_mpi_FCFLAGS = $(fortran_test_flags)
examples_transpose_fortran_mpi_LDADD = $(fortran_test_libs)
test_fortran_operations_mpi_SOURCES = test/fortran/operations.f90
test_fortran_operations_mpi_FCFLAGS = $(fortran_test_flags) $(FC_MODINC)$(srcdir)/test/fortran
test_fortran_operations_mpi_LDADD = $(fortran_test_libs)
# A program needs the modules before it can be compiled.
$(examples_cg_fortran_mpi_OBJECTS) $(examples_halo_fortran_mpi_OBJECTS): $(rondo_mpi_object)
$(examples_transpose_fortran_mpi_OBJECTS) $(test_fortran_operations_mpi_OBJECTS): $(rondo_mpi_object)
$(test_fortran_operations_mpi_OBJECTS): test/fortran/operations.inc
endif
EXTRA_DIST += \
	examples/processes.c \
	examples/survive.c
