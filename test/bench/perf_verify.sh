#!/bin/sh
# rondo-perf's verification sees one planted wrong element in every operation, in every format, and says so by its exit
# status; without the plant the same run is right. And wrong usage is 2, with a sentence.
set -u
perf=${top_builddir:-build}/rondo-perf
[ -x "$perf" ] || { echo "no rondo-perf here"; exit 77; }
failed=0
quick='-b 60 -e 60 -n 2 -w 1 --turns 1 --ranks 3'

# expect STATUS OPTIONS...
expect() {
    want=$1
    shift
    out=$(timeout 60 "$perf" $quick "$@" 2>&1)
    got=$?
    [ $got -eq "$want" ] && return
    printf 'rondo-perf %s: exit status %s, not %s\n%s\n' "$*" $got "$want" "$out"
    failed=1
}

for op in allreduce reduce broadcast allgather allgatherv reduce_scatter reduce_scatterv alltoall alltoallv gather gatherv \
    scatter scatterv sendrecv bandwidth pingpong; do
    expect 0 $op
    expect 1 $op --plant-error
    printf '%s\n' "$out" | grep -q '^# WRONG: [1-9]' || { printf '%s: not said\n%s\n' $op "$out"; failed=1; }
done
for op in allreduce reduce allgather allgatherv reduce_scatter reduce_scatterv gather gatherv scatter scatterv; do
    expect 0 $op --in-place --offset 3
    expect 1 $op --in-place --offset 3 --plant-error
done
for format in osu nccl json; do
    expect 1 allreduce --format $format --plant-error
done
expect 0 allreduce -c 0 --plant-error # told not to look

expect 0 allreduce -t float8_e5m2 --algo ring --ranks 9 # which has not nine whole numbers in a row

# every type and operator that go together: the values are exact in each
for type in int8 uint8 int16 uint16 uint32 int64 uint64; do
    expect 0 allreduce -t $type -o sum
    expect 0 allreduce -t $type -o max
done
for op in sum prod min max avg band bor bxor land lor lxor; do
    expect 0 allreduce -t int32 -o $op
done
for op in sum prod land lor lxor band; do
    expect 0 allreduce -t bool -o $op
done
for type in float16 bfloat16 float32 float64 float8_e4m3 float8_e5m2; do
    for op in sum avg; do
        expect 0 allreduce -t $type -o $op
    done
done
for op in prod min max; do
    expect 0 allreduce -t float32 -o $op
    expect 0 allreduce -t float8_e5m2 -o $op
done
for type in complex64 complex128; do
    expect 0 allreduce -t $type -o sum
    expect 0 allreduce -t $type -o prod
done
for type in float32_int32 float64_int32 int32_int32 int64_int32 float32_float32 float64_float64; do
    expect 0 allreduce -t $type -o minloc
    expect 1 allreduce -t $type -o maxloc --plant-error
done
expect 1 allreduce -t float32 -o band # no such sum: the library refuses, the program says so

for wrong in 'nosuch' 'allreduce -b' 'allreduce -b 8X' 'allreduce -f 1' 'allreduce -t float99' 'allreduce -o plus' \
    'allreduce -r 3' 'allreduce --peer nccl' 'allreduce --peer mpi' 'allreduce --graph' \
    'alltoall --in-place' 'allreduce --skew' 'allreduce -b 8K' 'call --format osu' 'allreduce reduce'; do
    expect 2 $wrong
    [ -n "$out" ] || { echo "rondo-perf $wrong: no sentence"; failed=1; }
done
# Buffers that one rank of this machine could have, but not two. The limit of address space is for a rondo-perf that does
# not see it: it would take all memory.
free=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB$/\1/p' /proc/meminfo)
if [ "${free:-0}" -gt 6000000 ] && [ -z "${SANITIZER:-}" ]; then
    out=$(ulimit -v 2000000; timeout 60 "$perf" allreduce --ranks 2 -b 8 -e $((free / 20 * 7))K 2>&1)
    [ $? -eq 1 ] && printf '%s\n' "$out" | grep -q 'for each of the 2 ranks here do not fit' ||
        { printf 'too much for two ranks is not refused:\n%s\n' "$out"; failed=1; }
fi

# Both communicators of --peer self know the two buffers.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
cat >"$dir/shim.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int rondo_comm_register(void *comm, void *buffer, size_t bytes, void *reg)
{
    int (*call)(void *, void *, size_t, void *) = (int (*)(void *, void *, size_t, void *))dlsym(RTLD_NEXT, "rondo_comm_register");

    fprintf(stderr, "registered\n");
    return call(comm, buffer, bytes, reg);
}
END
${CC:-cc} -shared -fPIC -o "$dir/shim.so" "$dir/shim.c" -ldl || { echo "the shim does not compile"; failed=1; }
for peer in none:2 self:ring:4; do
    out=$(LD_PRELOAD=$dir/shim.so timeout 60 "$perf" allreduce $quick --ranks 1 --register --peer ${peer%:*} 2>&1)
    [ "$(printf '%s\n' "$out" | grep -c '^registered$')" = ${peer##*:} ] ||
        { printf -- '--register --peer %s: not %s registrations:\n%s\n' ${peer%:*} ${peer##*:} "$out"; failed=1; }
done

CUDA_VISIBLE_DEVICES='' # a machine with GPUs has none then
export CUDA_VISIBLE_DEVICES
expect 2 allreduce --device cuda
[ -n "$out" ] || { echo "rondo-perf allreduce --device cuda: no sentence"; failed=1; }
exit $failed
