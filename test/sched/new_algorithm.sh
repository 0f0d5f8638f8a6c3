#!/bin/sh
# A new algorithm is one file, named in lib/sched/algo/local.mk: test/sched/star.c is added so, in a folder of its own, and
# is then listed, priced, chosen and forced, checked on symbols and against its costs, and runs on host memory and on
# simulated GPUs. All other objects are those of the build: nothing else is edited, nor even compiled again.
set -u
: "${top_builddir=.}" "${top_srcdir=$(cd "$(dirname "$0")/../.." && pwd)}"
[ -f "$top_builddir/Makefile" ] || { echo "no Makefile in $top_builddir"; exit 77; }
unset RONDO_ALGO RONDO_PROTO RONDO_DEBUG RONDO_DEBUG_FILE RONDO_TUNE RONDO_CMA MAKEFLAGS MAKELEVEL MFLAGS
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
failures=0

# The one file and the one line. The order of the lines is the order of the table.
mkdir -p "$dir/lib/sched/algo" "$dir/include/sched/algo"
cp "$top_srcdir"/lib/sched/algo/*.c "$top_srcdir/test/sched/star.c" "$dir/lib/sched/algo"
sed 's,^\(.*\)lib/sched/algo/direct\.c \\$,&\n\1lib/sched/algo/star.c \\,' "$top_srcdir/lib/sched/algo/local.mk" >"$dir/local.mk"
[ "$(diff "$top_srcdir/lib/sched/algo/local.mk" "$dir/local.mk" | grep -c '^[<>]')" = 1 ] || { echo "not one line"; exit 1; }

# build FILE PROGRAM...: the table with the card of FILE, and programs that have it.
build()
{
    rm -f "$dir"/*.o "$dir/star.c"
    cp "$1" "$dir/star.c"
    shift
    # shellcheck disable=SC2046 # names of files
    sh "$top_srcdir/lib/sched/algo/cards.sh" "$dir" \
        $(sed -n '/^algo_sources/,/[^\\]$/s,^[[:space:]]*\(lib/[^ ]*\).*,\1,p' "$dir/local.mk") \
        >"$dir/include/sched/algo/cards.h" || exit 1
    for program; do
        set -- "$@" "$dir/$program"
        shift
    done
    (cd "$top_builddir" && make -s -f "$mk" S="$dir" NEW=star "$@") >"$dir/made" 2>&1 || { cat "$dir/made"; exit 1; }
}

# check CODE PATTERN COMMAND...: its exit code, and a line of its output.
check()
{
    code=$1 pattern=$2
    shift 2
    output=$(timeout 60 "$@" 2>&1)
    got=$?
    if [ "$got" != "$code" ] || ! printf '%s\n' "$output" | grep -q -e "$pattern"; then
        echo "failed: $*: exit $got, wanted $code with a line like '$pattern'; it said:"
        printf '%s\n' "$output" | head -20
        failures=$((failures + 1))
    fi
}

mk=$(cd "$top_srcdir" && pwd)/test/sched/new_algorithm.mk
simulated=
[ -x "$top_builddir/test/sim/matrix" ] && simulated=matrix

# A schedule that forgets a rank is caught, so it is checked.
sed 's/r = 1; r < n; r++)$/r = 1; r < n - 1; r++)/' "$top_srcdir/test/sched/star.c" >"$dir/wrong.c"
build "$dir/wrong.c" check
check 1 '^star allreduce, 2 ranks' "$dir/check" 2 3
rm -f "$dir/check"

# shellcheck disable=SC2086 # a word or none
build "$dir/lib/sched/algo/star.c" rondo-info rondo-perf check model $simulated
check 0 ' 0 failures' "$dir/check" 1 12
"$dir/model" || { echo "failed: the card's costs are not those of its programs"; failures=$((failures + 1)); }

# Listed, priced, forced.
check 1 'there are .*, star, ' env RONDO_ALGO=none "$dir/rondo-info" plan allreduce 1K --ranks 3
check 0 '^    star  *simple  *[0-9.K]*  *[0-9.]*$' "$dir/rondo-info" plan allreduce 1K --ranks 3
check 0 '^--> star ' env RONDO_ALGO=star "$dir/rondo-info" plan allreduce 1K --ranks 3
check 1 'star does not do this operation' env RONDO_ALGO=star "$dir/rondo-info" plan broadcast 1K --ranks 3

# Chosen, where messages and the cores' bytes are dear, by slots alone: nothing moves less in so few messages.
for proto in ll cma board-ll board; do
    printf 'shm.%s.alpha 1e6\n' $proto
done >"$dir/prices"
printf 'shm.simple.message 100\nshm.simple.beta 1\nshm.simple.cross 1e-6\nshm.simple.gamma 0\n' >>"$dir/prices"
check 0 '^--> star  *simple ' env RONDO_TUNE="$dir/prices" "$dir/rondo-info" plan allreduce 1K --ranks 3 --cores 1

# Run on host memory, forced and chosen.
check 0 'all results right' env RONDO_ALGO=star "$dir/rondo-perf" allreduce --ranks 3 -b 8 -e 256K -f 32 -n 2 --turns 1
RONDO_DEBUG=info
export RONDO_DEBUG
for forced in RONDO_ALGO=star RONDO_TUNE="$dir/prices"; do
    check 0 ': star by ' env "$forced" "$dir/rondo-perf" allreduce --ranks 3 -b 1K -e 1K -n 2 --turns 1
    printf '%s\n' "$output" | grep -q 'all results right' || { echo "failed: $output"; failures=$((failures + 1)); }
done
unset RONDO_DEBUG

# Between GPUs: listed and priced, chosen by prices of its own, and run by the kernel of programs.
if "$dir/rondo-info" | grep -q '^CUDA  *built without'; then
    echo "built without CUDA: nothing between GPUs"
    exit $((failures != 0))
fi
RONDO_TOPO_FILE=$top_srcdir/test/topo/h200-8.gpus
export RONDO_TOPO_FILE
check 0 '^  star  *ll128  *[0-9.]* us ' "$dir/rondo-info" plan allreduce 1M --device cuda
check 0 '^\* star  *ll128 ' env RONDO_ALGO=star "$dir/rondo-info" plan allreduce 1M --device cuda
printf 'cuda.star.ll128.alpha 0.1\ncuda.star.ll128.hop 0.1\n' >"$dir/gpu"
check 0 '^\* star  *ll128 ' env RONDO_TUNE="$dir/gpu" "$dir/rondo-info" plan allreduce 8 --device cuda
if [ -n "$simulated" ]; then
    check 0 'right' "$dir/matrix" --ranks 4 --operation allreduce --share 1/20 --forced star/ll128
    printf '%s\n' "$output" | grep -q ' 0 of them refused' || { echo "failed: refused: $output"; failures=$((failures + 1)); }
else
    echo "no simulated GPUs were built: nothing is run there"
fi
exit $((failures != 0))
