# Strangers know the handshake's form: compiled apart from libtest.la, which sees only what a user sees.
test_fault_hostile_SOURCES = \
	test/fault/attacker.c \
	test/fault/hostile.c \
	test/fault/hostile.h
test_fault_hostile_LDADD = libtest_parts.la $(LDADD)

# Ranks to which something happens; the table of algorithms tells which ones can be forced.
check_PROGRAMS += test/fault/trials
test_fault_trials_SOURCES = \
	test/fault/judge.c \
	test/fault/limits.c \
	test/fault/plan.c \
	test/fault/plan.h \
	test/fault/recover.c \
	test/fault/steps.c \
	test/fault/trial.c \
	test/fault/trial.h \
	test/fault/trials.c
test_fault_trials_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_fault_trials_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rd_log

# A system call is refused once, whoever makes it.
check_PROGRAMS += test/fault/refused
test_fault_refused_LDADD = libtest_parts.la $(LDADD)

# A limit of the process is small.
check_PROGRAMS += test/fault/ulimits
test_fault_ulimits_LDADD = libtest_parts.la $(LDADD)

# The k-th call that asks the system for something fails: the linker hands over the calls of librondo's own objects.
check_PROGRAMS += test/fault/kth
test_fault_kth_SOURCES = \
	test/fault/calls.c \
	test/fault/calls.h \
	test/fault/kth.c
test_fault_kth_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_fault_kth_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=accept4 \
	-Wl,--wrap=aligned_alloc \
	-Wl,--wrap=bind \
	-Wl,--wrap=calloc \
	-Wl,--wrap=connect \
	-Wl,--wrap=epoll_create1 \
	-Wl,--wrap=epoll_ctl \
	-Wl,--wrap=eventfd \
	-Wl,--wrap=fallocate \
	-Wl,--wrap=fcntl \
	-Wl,--wrap=fopen \
	-Wl,--wrap=free \
	-Wl,--wrap=ftruncate \
	-Wl,--wrap=getifaddrs \
	-Wl,--wrap=getpeername \
	-Wl,--wrap=getsockname \
	-Wl,--wrap=listen \
	-Wl,--wrap=malloc \
	-Wl,--wrap=memfd_create \
	-Wl,--wrap=mmap \
	-Wl,--wrap=munmap \
	-Wl,--wrap=posix_memalign \
	-Wl,--wrap=process_vm_readv \
	-Wl,--wrap=pthread_create \
	-Wl,--wrap=realloc \
	-Wl,--wrap=recvmsg \
	-Wl,--wrap=sendmsg \
	-Wl,--wrap=setsockopt \
	-Wl,--wrap=socket \
	-Wl,--wrap=syscall
