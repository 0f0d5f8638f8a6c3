#!/bin/sh
# Fuzzes the targets of test/fuzz with libFuzzer, address and undefined sanitizers, one after the other:
#
#   test/fuzz/run.sh [SECONDS] [TARGET...]     SECONDS for each target (default 60)
#
# FUZZ_JOBS processes work on a target together (default 1), and FUZZ_RUNS inputs end it earlier.
#
# It builds into a folder of its own, with clang (CLANG), and works on a copy of the corpus: what it finds of use stays
# in that folder, in new/TARGET; a crash ends the run and leaves its input beside it.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
seconds=${1:-60}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- unique_id handshake records environment files topology graphs dumps monitor_record monitor_wire
clang=${CLANG:-clang}
build=${FUZZ_BUILD:-$PWD/fuzz-build}
mkdir -p "$build"
cd "$build"
[ -e Makefile ] || "$source/configure" -q --with-mpi=no --without-ucx --disable-shared CC="$clang" \
    CFLAGS="-O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all"
make -s librondo_core.la
for target; do
    case $target in
    monitor_record) more=$source/test/fuzz/dumps_write.c bytes=2048 ;;
    dumps) more="$source/test/fuzz/dumps_write.c $source/tools/load.c $source/tools/load_fr.c $source/tools/load_json.c $source/tools/value.c \
        $source/tools/value_json.c $source/tools/value_pickle.c" bytes=8192 ;;
    topology | graphs) more='' bytes=8192 ;;
    *) more='' bytes=2048 ;;
    esac
    "$clang" -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -D_GNU_SOURCE= -I"$source/lib" -I"$source/test" -I. \
        "$source/test/fuzz/$target.c" $more .libs/librondo_core.a -lsodium $(pkg-config --libs hwloc) -lm -lpthread \
        -o "fuzz_$target"
    mkdir -p "new/$target"
    echo "== $target, $seconds s =="
    RONDO_DEBUG=none "./fuzz_$target" ${FUZZ_JOBS:+-fork=$FUZZ_JOBS} ${FUZZ_RUNS:+-runs=$FUZZ_RUNS} -max_total_time="$seconds" -max_len=$bytes -timeout=20 -print_final_stats=1 \
        "new/$target" "$source/test/fuzz/corpus/$target" >"$target.log" 2>&1 || { tail -40 "$target.log"; exit 1; }
    grep -E 'stat::|DONE|cov:' "$target.log" | tail -9
done
