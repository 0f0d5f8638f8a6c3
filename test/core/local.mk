check_PROGRAMS += \
	test/core/closed_descriptors \
	test/core/completed \
	test/core/core_dump \
	test/core/create_all \
	test/core/dump_asked \
	test/core/dump_now \
	test/core/dump_wait \
	test/core/derived_cause \
	test/core/file_limit \
	test/core/footprint \
	test/core/first_thread \
	test/core/force_next \
	test/core/gather_put \
	test/core/group_memory \
	test/core/groups \
	test/core/grow \
	test/core/grow_kill \
	test/core/grow_refused \
	test/core/ids_wiped \
	test/core/hooks \
	test/core/lifetime_bare_clone \
	test/core/lifetime_cancel_reads \
	test/core/lifetime_create_destroy \
	test/core/lifetime_exit_fork \
	test/core/lifetime_peer_leaves \
	test/core/lifetime_revoke \
	test/core/lifetime_slow_kernel \
	test/core/lifetime_use_after_end \
	test/core/many_creations \
	test/core/mismatch_exit \
	test/core/nan_check \
	test/core/on_error \
	test/core/on_wait \
	test/core/status \
	test/core/status_lines \
	test/core/config \
	test/core/late_far \
	test/core/late_split \
	test/core/left_before \
	test/core/left_other \
	test/core/request_clock \
	test/core/suspend \
	test/core/short_stack \
	test/core/timeout_once \
	test/core/timeout_set \
	test/core/one_process \
	test/core/plans_kept \
	test/core/process_state \
	test/core/no_counter \
	test/core/nonblocking \
	test/core/op_numbers \
	test/core/opposite_orders \
	test/core/order \
	test/core/progress_across \
	test/core/report \
	test/core/revoke_all \
	test/core/roots \
	test/core/shrink_abort \
	test/core/shrink_dial \
	test/core/shrink_exec \
	test/core/shrink_survivors \
	test/core/signature_mismatch \
	test/core/slow_ways \
	test/core/split_kill \
	test/core/split_maker \
	test/core/split_order \
	test/core/thread_signals \
	test/core/transports \
	test/core/unreadable_memory \
	test/core/works \
	test/core/zero_far
test_core_closed_descriptors_LDADD = libtest.la
test_core_completed_LDADD = libtest.la
test_core_core_dump_LDADD = libtest.la
test_core_no_counter_LDADD = libtest.la
test_core_plans_kept_LDADD = libtest.la
test_core_create_all_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_core_create_all_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rondo_comm_create
test_core_report_LDADD = libtest.la
test_core_dump_asked_LDADD = libtest.la
test_core_dump_now_LDADD = libtest.la
test_core_dump_wait_LDADD = libtest.la
test_core_dump_wait_SOURCES = test/core/dump_wait.c test/util/slow_open.h
test_core_gather_put_LDADD = libtest.la
test_core_group_memory_LDADD = libtest.la
test_core_groups_LDADD = libtest.la
test_core_grow_LDADD = libtest.la
test_core_grow_kill_LDADD = libtest.la
test_core_grow_kill_SOURCES = test/core/grow_kill.c test/core/die_at.c test/core/die_at.h
test_core_hooks_LDADD = libtest.la
test_core_order_LDADD = libtest_parts.la $(LDADD)
test_core_lifetime_bare_clone_LDADD = libtest.la
test_core_lifetime_create_destroy_LDADD = libtest.la
test_core_lifetime_exit_fork_LDADD = libtest.la
test_core_lifetime_peer_leaves_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_core_lifetime_revoke_LDADD = libtest.la
test_core_lifetime_slow_kernel_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_core_lifetime_slow_kernel_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=syscall
test_core_lifetime_use_after_end_LDADD = libtest.la
test_core_mismatch_exit_LDADD = libtest.la
test_core_nan_check_LDADD = libtest.la
test_core_on_error_LDADD = libtest.la
test_core_on_wait_LDADD = libtest.la
test_core_derived_cause_LDADD = libtest.la
test_core_file_limit_LDADD = libtest.la
test_core_footprint_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_core_footprint_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=mmap
test_core_status_LDADD = libtest.la
test_core_status_lines_LDADD = libtest.la
test_core_suspend_LDADD = libtest.la
test_core_config_LDADD = libtest.la
test_core_late_far_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_core_late_split_LDADD = libtest.la
test_core_zero_far_LDADD = libtest.la
test_core_left_before_LDADD = libtest.la
test_core_left_other_LDADD = libtest.la
test_core_request_clock_LDADD = libtest.la
test_core_first_thread_LDADD = libtest.la
test_core_force_next_LDADD = libtest.la
test_core_many_creations_LDADD = libtest.la
test_core_timeout_once_LDADD = libtest.la
test_core_timeout_set_LDADD = libtest.la
test_core_one_process_LDADD = libtest.la
# It loads the library itself.
test_core_process_state_LDADD = -lm -ldl
test_core_nonblocking_LDADD = libtest.la
test_core_op_numbers_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_core_opposite_orders_LDADD = libtest.la
test_core_progress_across_LDADD = libtest.la
test_core_revoke_all_LDADD = libtest.la
test_core_roots_LDADD = libtest.la
test_core_shrink_abort_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_core_shrink_abort_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rd_boot_destroy
test_core_shrink_dial_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_core_shrink_dial_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rd_boot_dial -Wl,--wrap=rd_agree_shrink_begin \
	-Wl,--wrap=getsockopt
test_core_shrink_exec_LDADD = libtest.la
test_core_shrink_survivors_LDADD = libtest.la
test_core_signature_mismatch_LDADD = libtest.la
test_core_slow_ways_LDADD = libtest.la
test_core_split_kill_LDADD = libtest.la
test_core_split_kill_SOURCES = test/core/split_kill.c test/core/die_at.c test/core/die_at.h
test_core_grow_refused_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_core_grow_refused_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc
test_core_ids_wiped_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_core_ids_wiped_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rd_boot_id_create
test_core_split_maker_LDADD = libtest_parts.la librondo_core.la $(cuda_parts) -lm
test_core_split_maker_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rd_comm_build
test_core_split_order_LDADD = libtest.la
test_core_thread_signals_LDADD = libtest.la
test_core_unreadable_memory_LDADD = libtest.la
test_core_works_LDADD = libtest.la

script_tests += \
	test/core/shrink_mpirun.sh \
	test/core/trace.sh
