check_PROGRAMS += \
	test/progress/proxy_threads
