# Layer 11: the interposer, a client of librondo's, for the MPI that configure found.
# librondo_mpi.so has the MPI's names and refers to nothing of it; librondo_mpi_calls.so, which it opens, takes what it
# refers to from the MPI of the process. Neither links one. Both are also installed as source, for other MPIs (build.mk).
interposer_sources = \
	lib/mpi/arguments.c \
	lib/mpi/blocks.c \
	lib/mpi/comms.c \
	lib/mpi/creation.c \
	lib/mpi/device_buffers.c \
	lib/mpi/device_spans.c \
	lib/mpi/device_spans.h \
	lib/mpi/entries.c \
	lib/mpi/entries.h \
	lib/mpi/entry_forms.h \
	lib/mpi/handles.c \
	lib/mpi/in_flight.c \
	lib/mpi/interpose.h \
	lib/mpi/kept.c \
	lib/mpi/kept.h \
	lib/mpi/layout.c \
	lib/mpi/lists.c \
	lib/mpi/measure.c \
	lib/mpi/mpi_fortran.c \
	lib/mpi/mpi_fortran.h \
	lib/mpi/nonblocking.c \
	lib/mpi/operation.c \
	lib/mpi/persistent.c \
	lib/mpi/reductions.c \
	lib/mpi/refused.c \
	lib/mpi/report.c \
	lib/mpi/revoked.c \
	lib/mpi/rules.c \
	lib/mpi/serve.c \
	lib/mpi/setup.c \
	lib/mpi/sorted.c \
	lib/mpi/stand_in.c \
	lib/mpi/stand_in.h \
	lib/mpi/table.c \
	lib/mpi/waits.c \
	lib/mpi/waits.h
interposersrcdir = $(datadir)/rondo/mpi
dist_interposersrc_DATA = \
	$(interposer_sources) \
	lib/mpi/build.mk \
	lib/mpi/preload.c

if HAVE_MPI
lib_LTLIBRARIES += librondo_mpi.la
librondo_mpi_la_SOURCES = lib/mpi/preload.c
librondo_mpi_la_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
librondo_mpi_la_LIBADD = -ldl
librondo_mpi_la_LDFLAGS = -shared -avoid-version -pthread

nccllib_LTLIBRARIES += librondo_mpi_calls.la
librondo_mpi_calls_la_SOURCES = $(interposer_sources)
librondo_mpi_calls_la_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
librondo_mpi_calls_la_LIBADD = librondo.la -ldl
librondo_mpi_calls_la_LDFLAGS = -shared -module -avoid-version -pthread -Wl,-rpath,'$$ORIGIN/..'

bin_SCRIPTS = tools/rondo-run
endif
EXTRA_DIST += tools/rondo-run.in
tools/rondo-run: tools/rondo-run.in
	$(AM_V_GEN)$(MKDIR_P) tools && $(SED) 's,@libdir@,$(libdir),; s,@datadir@,$(datadir),; s,@VERSION@,$(VERSION),' \
	    $(srcdir)/tools/rondo-run.in >$@ && chmod +x $@
CLEANFILES += tools/rondo-run
