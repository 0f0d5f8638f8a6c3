#!/bin/sh
# Builds of their own with the address and undefined sanitizers, and with the thread sanitizer: the faults planted for
# them are found, and a part of the programs, chosen to touch every room of the library in a short time, runs without a
# report. The whole of them, as doc/reliability.md has it, takes --enable-sanitizer by hand.
set -u
source=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR
dir=$(mktemp -d) || exit 1
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
[ ! -e "$source/config.status" ] || { echo "the source folder is configured"; exit 77; }
failed=0

# build LIST OPTION...: a folder of its own, configured for this list of sanitizers.
build() {
    list=$1
    shift
    mkdir "$dir/${list%,*}" && cd "$dir/${list%,*}" || exit 1
    CONFIG_SHELL=/bin/sh "$source/configure" CC="${CC:-cc}" CFLAGS="-O0 -g1" --enable-sanitizer="$list" --disable-dependency-tracking \
        --with-cuda=no --with-mpi=no "$@" >log 2>&1 && return
    tail -n 30 log
    grep -q "cannot link with -fsanitize" log && echo "the compiler lacks the runtime of $list" && exit 77
    echo "$list: configure failed"
    exit 1
}

# run PROGRAM ARGUMENT...: what it says is shown if it fails.
run() {
    SANITIZER=$list top_srcdir=$source top_builddir=. timeout --foreground 600 "$@" >log 2>&1 && {
        echo "$list: $*: nothing reported"
        return
    }
    status=$?
    tail -n 40 log
    echo "$list: $*: status $status"
    failed=1
}

# planted PROGRAM...: builds these, too, on all cores, behind whatever else runs.
planted() {
    nice make -j"${RONDO_QUICKSTART_JOBS:-$(nproc 2>/dev/null || echo 2)}" test/pkg/sanitizer_planted "$@" >log 2>&1 ||
        { tail -n 30 log; echo "$list: does not build"; exit 1; }
    SANITIZER=$list top_builddir=. sh "$source/test/pkg/sanitizers_find.sh" || failed=1
}

build address,undefined
planted test/api/args test/boot/hostile test/core/signature_mismatch test/core/group_memory test/transport/nodes \
    test/api/op_matrix test/api/random_programs test/fault/trials test/nccl/operations
run test/api/args
run test/boot/hostile
run test/core/signature_mismatch
run test/core/group_memory
# Leaks are not looked for where UCX is opened by name: the sanitizer of gcc 12 then takes a library's thread-local memory
# for another layout, depending on where it lies, reads at an address near 0 and ends the program.
ASAN_OPTIONS=detect_leaks=0
export ASAN_OPTIONS
run test/transport/nodes --short
unset ASAN_OPTIONS
run test/api/op_matrix --ranks 3
run test/api/random_programs --count 16
run test/fault/trials --count 20 --kinds kill,stop,late,abort,birth,second # no limits: the sanitizer itself wants memory
run test/nccl/operations

build thread --with-ucx=no
TSAN_OPTIONS=report_thread_leaks=0
export TSAN_OPTIONS
planted test/core/lifetime_use_after_end test/core/one_process test/api/op_matrix test/core/lifetime_revoke \
    test/base/health test/base/wait
run test/core/lifetime_use_after_end
run test/core/one_process
run test/api/op_matrix --ranks 3 --kind threads
run test/core/lifetime_revoke
run test/base/health
run test/base/wait
exit $failed
