# Models of the protocols, for spin.
script_tests += \
	test/model/check.sh
EXTRA_DIST += \
	test/model/abort.pml \
	test/model/board.pml \
	test/model/cells.pml \
	test/model/fifo.pml \
	test/model/ll.pml \
	test/model/memory.pml \
	test/model/oneshot.pml \
	test/model/pull.pml \
	test/model/record.pml \
	test/model/ring.pml \
	test/model/roll.pml \
	test/model/room.pml \
	test/model/shrink.pml \
	test/model/simple.pml
