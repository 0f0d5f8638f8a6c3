# The programs that test/sched/new_algorithm.sh runs, linked anew with the table of algorithms in $(S): everything else is
# as it was built, so a new algorithm needs no edit elsewhere.
include Makefile

new_objects = $(S)/algos.o $(S)/$(NEW).o
new_compile = $(CC) $(DEFS) -I$(S)/include $(DEFAULT_INCLUDES) $(INCLUDES) $(AM_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS) -c -o $@
new_flags = $(AM_CFLAGS) $(CFLAGS) $(AM_LDFLAGS) $(LDFLAGS) -o $@ $(new_objects)
new_link = $(LIBTOOL) --silent --tag=CC $(AM_LIBTOOLFLAGS) $(LIBTOOLFLAGS) --mode=link $(CCLD) $(new_flags)
new_link_cxx = $(LIBTOOL) --silent --tag=CXX $(AM_LIBTOOLFLAGS) $(LIBTOOLFLAGS) --mode=link $(CXXLD) $(new_flags)

$(S)/algos.o: $(S)/include/sched/algo/cards.h
	$(new_compile) $(top_srcdir)/lib/sched/algo/algos.c
$(S)/$(NEW).o: $(S)/include/sched/algo/cards.h
	$(new_compile) $(S)/$(NEW).c
$(S)/rondo-info: $(new_objects) $(rondo_info_OBJECTS)
	$(new_link) $(rondo_info_OBJECTS) $(rondo_info_LDADD) $(LIBS)
$(S)/rondo-perf: $(new_objects) $(rondo_perf_OBJECTS)
	$(new_link) $(rondo_perf_OBJECTS) librondo_core.la $(cuda_parts) $(filter-out librondo.la,$(rondo_perf_LDADD)) $(LIBS)
$(S)/check: $(new_objects) $(test_sched_check_OBJECTS)
	$(new_link) $(test_sched_check_OBJECTS) $(test_sched_check_LDADD) $(LIBS)
$(S)/model: $(new_objects) $(test_cost_model_OBJECTS)
	$(new_link) $(test_cost_model_OBJECTS) $(test_cost_model_LDADD) $(LIBS)
$(S)/matrix: $(new_objects) $(test_sim_matrix_OBJECTS)
	$(new_link_cxx) $(test_sim_matrix_OBJECTS) $(test_sim_matrix_LDADD) $(LIBS)
