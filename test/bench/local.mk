script_tests += \
	test/bench/gpu_many.sh \
	test/bench/host_bound.sh \
	test/bench/perf_formats.sh \
	test/bench/perf_peer.sh \
	test/bench/perf_verify.sh \
	test/bench/record.sh
