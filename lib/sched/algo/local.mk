# Layer 1: one algorithm a file. Of two that cost the same the one is taken whose file stands first.
algo_sources = \
	lib/sched/algo/direct.c \
	lib/sched/algo/oneshot.c \
	lib/sched/algo/twoshot.c \
	lib/sched/algo/ring.c \
	lib/sched/algo/chain.c \
	lib/sched/algo/tree.c \
	lib/sched/algo/pat.c \
	lib/sched/algo/rd.c \
	lib/sched/algo/bruck.c \
	lib/sched/algo/binomial.c \
	lib/sched/algo/central.c \
	lib/sched/algo/messages.c \
	lib/sched/algo/copy.c \
	lib/sched/algo/hier.c \
	lib/sched/algo/collnet.c
librondo_core_la_SOURCES += \
	lib/sched/algo/algos.c \
	lib/sched/algo/algos.h \
	lib/sched/algo/hier_blocks.c \
	lib/sched/algo/hier_phases.c \
	lib/sched/algo/hier_phases.h \
	lib/sched/algo/hier_ranges.c \
	lib/sched/algo/hier_vectors.c \
	lib/sched/algo/hier_work.c \
	lib/sched/algo/hier_work.h \
	$(algo_sources)

# The table: every card that these files define.
nodist_librondo_core_la_SOURCES += lib/sched/algo/cards.h
BUILT_SOURCES += lib/sched/algo/cards.h
CLEANFILES += lib/sched/algo/cards.h
EXTRA_DIST += lib/sched/algo/cards.sh
lib/sched/algo/cards.h: $(algo_sources) lib/sched/algo/local.mk lib/sched/algo/cards.sh
	$(AM_V_GEN)$(MKDIR_P) lib/sched/algo && \
	$(SHELL) $(top_srcdir)/lib/sched/algo/cards.sh $(top_srcdir) $(algo_sources) > $@.tmp && mv -f $@.tmp $@
$(librondo_core_la_OBJECTS): | lib/sched/algo/cards.h
