# The Fortran module: a client of librondo's.
# The files for counts of kind int32 are those for int64 with the other word in its place.

if HAVE_FORTRAN
lib_LTLIBRARIES += librondo_fortran.la
librondo_fortran_la_SOURCES = \
	lib/fortran/calls.c \
	lib/fortran/glue.c \
	lib/fortran/glue.h \
	lib/fortran/operations_int64.c \
	lib/fortran/rondo.f90 \
	lib/fortran/rondo_counts_int64.f90 \
	lib/fortran/rondo_inside.f90 \
	lib/fortran/rondo_types.f90
nodist_librondo_fortran_la_SOURCES = \
	lib/fortran/operations_int32.c \
	lib/fortran/rondo_counts_int32.f90
librondo_fortran_la_CPPFLAGS = $(AM_CPPFLAGS) $(CFI_CPPFLAGS)
librondo_fortran_la_LIBADD = librondo.la
librondo_fortran_la_LDFLAGS = -version-info $(RONDO_LT_VERSION) -no-undefined $(RONDO_RPATHS)
AM_FCFLAGS = $(FC_WARN) $(FC_MODOUT)lib/fortran $(FC_MODINC)lib/fortran

lib/fortran/operations_int32.c: lib/fortran/operations_int64.c
	$(AM_V_GEN)$(MKDIR_P) lib/fortran && $(SED) 's/int64/int32/g' $(srcdir)/lib/fortran/operations_int64.c >$@
lib/fortran/rondo_counts_int32.f90: lib/fortran/rondo_counts_int64.f90
	$(AM_V_GEN)$(MKDIR_P) lib/fortran && $(SED) 's/int64/int32/g' $(srcdir)/lib/fortran/rondo_counts_int64.f90 >$@

# Which module uses which: each writes its .mod file where the others look for it.
lib/fortran/rondo_counts_int32.lo lib/fortran/rondo_counts_int64.lo lib/fortran/rondo_inside.lo: lib/fortran/rondo_types.lo
lib/fortran/rondo.lo: lib/fortran/rondo_counts_int32.lo lib/fortran/rondo_counts_int64.lo lib/fortran/rondo_inside.lo

moduledir = $(includedir)/rondo-fortran
dist_module_DATA = lib/fortran/rondo_mpi.F90
modules = \
	lib/fortran/rondo.mod \
	lib/fortran/rondo_counts_int32.mod \
	lib/fortran/rondo_counts_int64.mod \
	lib/fortran/rondo_inside.mod \
	lib/fortran/rondo_types.mod
nodist_module_DATA = $(modules)
$(modules): lib/fortran/rondo.lo
	@test -f $@ || { rm -f $(@:.mod=.lo) && $(MAKE) $(AM_MAKEFLAGS) $(@:.mod=.lo); }
pkgconfig_DATA += rondo-fortran.pc

# For the MPI that configure found. It is small, and bound to that MPI: an archive, and a module apart from the others.
if HAVE_MPI_FORTRAN
lib_LTLIBRARIES += librondo_fortran_mpi.la
librondo_fortran_mpi_la_SOURCES = \
	lib/fortran/rondo_mpi.F90
librondo_fortran_mpi_la_FCFLAGS = $(AM_FCFLAGS) $(MPI_FCFLAGS)
librondo_fortran_mpi_la_LDFLAGS = -static
rondo_mpi_object = lib/fortran/librondo_fortran_mpi_la-rondo_mpi.lo
$(rondo_mpi_object): lib/fortran/rondo.lo

mpimoduledir = $(moduledir)/mpi
nodist_mpimodule_DATA = lib/fortran/rondo_mpi.mod
lib/fortran/rondo_mpi.mod: $(rondo_mpi_object)
	@test -f $@ || { rm -f $(rondo_mpi_object) && $(MAKE) $(AM_MAKEFLAGS) $(rondo_mpi_object); }
pkgconfig_DATA += rondo-fortran-mpi.pc
endif
endif
CLEANFILES += \
	lib/fortran/*.mod \
	lib/fortran/operations_int32.c \
	lib/fortran/rondo_counts_int32.f90
