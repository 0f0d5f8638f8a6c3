# The interposer for another MPI than the one for which rondo was built, from its installed source:
#
#   make -f PREFIX/share/rondo/mpi/build.mk MPICC=/path/of/mpicc DEST=$HOME/rondo-mpi
#   mpirun -n 4 rondo-run --library $HOME/rondo-mpi/librondo_mpi.so ./program
#
# rondo is found by pkg-config, first in the installation that this file belongs to; or by RONDO_CFLAGS and RONDO_LIBS.
MPICC = mpicc
DEST = .
CFLAGS = -O2 -g
here := $(dir $(lastword $(MAKEFILE_LIST)))
prefix := $(abspath $(here)../../..)
space := $(subst ,, )
folders := $(wildcard $(prefix)/lib/pkgconfig $(prefix)/lib64/pkgconfig $(prefix)/lib/*/pkgconfig)
pkg_config := PKG_CONFIG_PATH="$(subst $(space),:,$(folders)):$$PKG_CONFIG_PATH" pkg-config
RONDO_CFLAGS = $(shell $(pkg_config) --cflags rondo)
RONDO_LIBS = $(shell $(pkg_config) --libs rondo) -Wl,-rpath,$(shell $(pkg_config) --variable=libdir rondo)

sources := $(filter-out preload,$(basename $(notdir $(wildcard $(here)*.c))))
objects := $(sources:%=$(DEST)/%.o)
compile = $(MPICC) $(CFLAGS) -std=gnu11 -D_GNU_SOURCE= -fPIC -fvisibility=hidden -I$(here).. $(RONDO_CFLAGS)

all: $(DEST)/librondo_mpi.so $(DEST)/librondo_mpi_calls.so
	rm -f $(DEST)/preload.o $(objects)

$(DEST)/%.o: $(here)%.c $(wildcard $(here)*.h)
	@mkdir -p $(DEST)
	$(compile) -c $< -o $@

# No MPI is linked: the names come from the MPI of the process.
$(DEST)/librondo_mpi.so: $(DEST)/preload.o
	$(CC) -shared $< -o $@ -ldl -pthread

$(DEST)/librondo_mpi_calls.so: $(objects)
	$(CC) -shared $(objects) -o $@ $(RONDO_LIBS) -ldl -pthread

.PHONY: all
