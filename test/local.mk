# Tests: how they are run, and which.
TEST_EXTENSIONS = .sh .mpi
SH_LOG_COMPILER = $(SHELL)
MPI_LOG_COMPILER = $(SHELL) $(top_srcdir)/test/util/mpirun.sh
# Limits of time are there for hangs: they bear with a second test beside each.
AM_TESTS_ENVIRONMENT = \
	RONDO_TEST_SLOW="$${RONDO_TEST_SLOW:-2}"; export RONDO_TEST_SLOW; \
	top_srcdir='$(abs_top_srcdir)'; top_builddir='$(abs_top_builddir)'; \
	CC='$(CC)'; NM='$(NM)'; MPICC='$(MPICC)'; MPIEXEC='$(MPIEXEC)'; MPI_CFLAGS='$(MPI_CFLAGS)'; MPI_LIBS='$(MPI_LIBS)'; \
	SANITIZER='$(SANITIZER)'; \
	export top_srcdir top_builddir CC NM MPICC MPIEXEC MPI_CFLAGS MPI_LIBS SANITIZER; \
	FC='$(FC)'; MPIFC='$(MPIFC)'; MPI_FCFLAGS='$(MPI_FCFLAGS)'; MPI_FCLIBS='$(MPI_FCLIBS)'; \
	export FC MPIFC MPI_FCFLAGS MPI_FCLIBS;

LDADD = librondo_core.la $(cuda_parts)

# Scripts that build the library anew, other scripts, and the programs. The fragments of the folders add theirs.
build_tests = \
	test/pkg/sanitized_builds.sh \
	test/pkg/debian.sh
script_tests = \
	test/layers.sh

# The order in which make -jN check begins: what takes longest, so that at the end none runs on alone. What computes on
# all cores there does so by `nice`, and has beside it what waits for most of its time; what simulates GPUs, and takes a
# core, comes one by one between such. Scripts that install go one after the other, and are so far apart that each finds
# the one before it done: what has to wait for another, make begins only when all the rest have begun. All else follows
# as TESTS has it.
first_tests = \
	test/pkg/sanitized_builds \
	test/played/doctor \
	test/fault/refused \
	test/boot/few_descriptors \
	test/fault/kth \
	test/tools/doctor_network \
	test/pkg/debian \
	test/core/shrink_survivors \
	test/core/roots \
	test/transport/socketpair \
	test/transport/nodes_fault \
	test/netplugin/fault \
	test/core/timeout_once \
	test/model/check \
	test/core/lifetime_bare_clone \
	test/monitor/events \
	test/sim/nodes \
	test/mpi/interposer_corners \
	test/fault/trials \
	test/ofi/nodes \
	test/pkg/install \
	test/sim/many \
	test/monitor/slow \
	test/monitor/slow_link \
	test/sim/rails \
	test/core/late_far \
	test/netplugin/nodes \
	test/sim/fused \
	test/netplugin/collnet \
	test/ofi/fault \
	test/pkg/wheel \
	test/sim/raced \
	test/monitor/late \
	test/monitor/hearts \
	test/sim/shim \
	test/mpi/interposer_calls \
	test/played/trials \
	test/sim/gdr \
	test/fault/hostile \
	test/core/lifetime_create_destroy \
	test/fortran/install \
	test/sim/grow \
	test/monitor/dump \
	test/played/programs \
	test/sim/window_host \
	test/core/lifetime_peer_leaves \
	test/core/opposite_orders \
	test/sim/scheduled \
	test/transport/nodes_link \
	test/monitor/nccl_ras \
	test/sim/narrow \
	test/core/unreadable_memory \
	test/monitor/differ_split \
	test/sim/simple \
	test/transport/lengths \
	test/monitor/blame \
	test/sim/delayed \
	test/monitor/stacks \
	test/monitor/ras_tcp \
	test/sim/delayed/collectives \
	test/monitor/differ \
	test/monitor/failed \
	test/sim/collectives \
	test/core/grow \
	test/transport/nodes \
	test/sim/delayed/messages \
	test/ucx/net \
	test/core/progress_across \
	test/sim/ordered \
	test/api/op_matrix
all_logs = $(patsubst %.mpi.log,%.log,$(patsubst %.sh.log,%.log,$(patsubst %$(EXEEXT).log,%.log,$(TESTS:=.log))))
TEST_LOGS = $(foreach log,$(first_tests:=.log),$(filter $(log),$(all_logs))) $(filter-out $(first_tests:=.log),$(all_logs))

# With sanitizers: the programs, and whether planted faults are found. The other scripts are about what is installed.
if SANITIZING
if SANITIZING_THREADS
# It sees nothing between processes, nor does it bear a thread in the child of a process with threads: those programs
# whose ranks or strangers are threads, and which neither count the process's own memory and threads nor need gigabytes.
# A fork's child is said to have leaked its parent's threads.
AM_TESTS_ENVIRONMENT += TSAN_OPTIONS='report_thread_leaks=0'; export TSAN_OPTIONS;
TESTS = \
	test/api/args \
	test/boot/again \
	test/boot/auth \
	test/boot/create \
	test/boot/derive \
	test/boot/leave \
	test/boot/listener \
	test/boot/hostile \
	test/boot/hosts \
	test/core/signature_mismatch \
	test/plan/choose \
	test/cost/model \
	test/core/lifetime_use_after_end \
	test/base/env \
	test/fault/hostile \
	test/plan/forced \
	test/core/group_memory \
	test/core/groups \
	test/node/node \
	test/node/node_mem \
	test/node/fd_pass \
	test/core/one_process \
	test/api/op_matrix \
	test/api/random_programs \
	test/core/lifetime_revoke \
	test/sched/compile \
	test/base/health \
	test/base/setting \
	test/base/types \
	test/api/v_tables \
	test/base/version \
	test/base/wait \
	$(fuzz_tests) \
	$(nccl_tests) \
	test/pkg/sanitizers_find.sh
else
TESTS = \
	$(check_PROGRAMS) \
	test/pkg/sanitizers_find.sh
endif
else
TESTS = \
	$(build_tests) \
	$(script_tests) \
	$(check_PROGRAMS)
if HAVE_FORTRAN
TESTS += $(fortran_script_tests)
endif
endif
EXTRA_DIST += $(build_tests) $(script_tests) $(fortran_script_tests)
