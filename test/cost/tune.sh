#!/bin/sh
# Prices: rondo-tune measures some and writes them, programs read them and choose by them, and a bad file is an error
# that names the line.
tune=$top_builddir/rondo-tune info=$top_builddir/rondo-info perf=$top_builddir/rondo-perf
for program in "$tune" "$info" "$perf"; do
    [ -x "$program" ] || { echo "no $program"; exit 77; }
done
unset RONDO_ALGO RONDO_PROTO RONDO_DEBUG RONDO_DEBUG_FILE RONDO_TUNE RONDO_NT_STORE RONDO_CMA
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
failures=0

# check CODE PATTERN COMMAND...: its exit code, and a line of its output
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

check 2 'see rondo-tune --help' "$tune" --ranks 1
check 2 'not wanted' "$tune" nonsense
check 0 'predictions off by' "$tune" --quick --ranks 2 --output "$dir/prices" --times "$dir/times"
check 0 '^shm.cma.cross  *[0-9]' cat "$dir/prices"
check 0 '^2 allreduce twoshot simple 131072 ' cat "$dir/times"
check 0 "prices of $dir/prices" env RONDO_TUNE="$dir/prices" "$info" plan allreduce 1M --ranks 2
check 0 'all results right' env RONDO_TUNE="$dir/prices" "$perf" allreduce --ranks 2 -b 1M -e 1M -n 2 --turns 1

# A machine that is just as predicted is good; one that takes 10 us for everything is not. The played rondo-perf asks
# the model, or does not.
cat >"$dir/played" <<'END'
#!/bin/sh
coll=$1
while [ $# -gt 1 ]; do
    case $1 in --ranks) ranks=$2 ;; --algo) RONDO_ALGO=$2 ;; --proto) RONDO_PROTO=$2 ;; esac
    shift
done
export RONDO_ALGO RONDO_PROTO
for size in 1024 16384; do
    us=$("$INFO" plan $coll $size --ranks $ranks | sed -n 's/^--> .* //p')
    [ -n "$us" ] && echo "$size $((size / 4)) ${ALWAYS:-$us}"
done
END
chmod +x "$dir/played"
check 0 'predictions off by a factor of 1.0[0-9] in the mean .* 0 by more than 2; .* by 1.0[0-9], 0 by more' \
    env INFO="$info" "$tune" --check --quick --ranks 2 --perf "$dir/played"
check 1 'off by [2-9]' env INFO="$info" ALWAYS=10 "$tune" --check --quick --ranks 2 --perf "$dir/played"
check 2 'prices of host memory' "$tune" --check --device cuda

# Times that were measured before: those of above, those of a machine with 32 cores, which the table for it predicts, and
# a file that has none.
check 0 'predictions off by' "$tune" --read "$dir/times" --output "$dir/again"
check 0 '^shm.cma.cross  *[0-9]' cat "$dir/again"
check 1 'by a factor of 1\.[0-4].* slower than the best by 1\.0[0-4]' \
    env RONDO_TUNE=xeon-many "$tune" --check --read "$top_srcdir/test/cost/xeon-32.times"
check 1 'by a factor of [2-9].* slower than the best by 1\.[2-9]' \
    env RONDO_TUNE=zen "$tune" --check --read "$top_srcdir/test/cost/xeon-32.times"
check 1 'prices:2 is no time' "$tune" --read "$dir/prices"
check 1 'cannot read' "$tune" --read "$dir/nothing"

# A file need not be whole; what a price says shows in the choice.
check 0 'prices of xeon' env RONDO_TUNE=xeon "$info" plan allreduce 64K --ranks 2
check 0 'prices of zen' env RONDO_TUNE=zen "$info" plan allreduce 64K --ranks 2
printf '# dear slots\n\nshm.simple.beta 1 # a byte a microsecond\nshm.board.beta 1\n' >"$dir/slots"
check 0 '^--> [a-z]* *cma ' env RONDO_TUNE="$dir/slots" "$info" plan broadcast 1M --ranks 2
printf 'shm.pull.cross 1\nstream never\n' >"$dir/pull"
check 0 '^--> [a-z]* *simple ' env RONDO_TUNE="$dir/pull" "$info" plan broadcast 1M --ranks 2

# A comment may be of any length, as the one that rondo-tune writes where it has read a file of a long name.
long=$(printf '%0300d' 0)
printf '# %s\nshm.pull.cross 1 # %s\nstream never\n' "$long" "$long" >"$dir/pull"
check 0 '^--> [a-z]* *simple ' env RONDO_TUNE="$dir/pull" "$info" plan broadcast 1M --ranks 2

# Between GPUs: a played rondo-perf whose kernels have these prices; what is fitted is what was planted.
cat >"$dir/perf" <<'END'
#!/bin/sh
coll=$1 ranks= algo= proto=
while [ $# -gt 1 ]; do
    case $1 in --ranks) ranks=$2 ;; --algo) algo=$2 ;; --proto) proto=$2 ;; esac
    shift
done
[ "$coll/$algo/$proto" = allreduce/twoshot/sentinel ] || { echo "not served" >&2; exit 1; }
echo "# a head" && awk -v n="$ranks" 'BEGIN { for (b = 8; b <= 4194304; b *= 4) print b, b / 4, 7 + b * 2 * (n - 1) / n / 200000 }'
END
chmod +x "$dir/perf"
if ! "$info" | grep -q '^CUDA  *built without'; then
    RONDO_TOPO_FILE=$top_srcdir/test/topo/h200-8.gpus
    export RONDO_TOPO_FILE
    check 0 'twoshot sentinel: 20 times, predicted within a factor of 1.0[0-3]' \
        "$tune" --device cuda --perf "$dir/perf" --output "$dir/gpu"
    check 0 '^cuda.twoshot.sentinel.alpha  *\(6\.[89]\|7\.[01]\|7$\)' cat "$dir/gpu"
    check 0 '^cuda.oneshot.ll.alpha  *2.1$' cat "$dir/gpu"
    check 0 '^[* ] twoshot *sentinel *\(6\.9\|7\.[01]\) us' env RONDO_TUNE="$dir/gpu" "$info" plan allreduce 8 --device cuda
    check 1 'nothing could be measured' "$tune" --device cuda --perf /bin/false --output "$dir/none"
    unset RONDO_TOPO_FILE
fi

# What is wrong is said, with its line.
check 1 'No such file' env RONDO_TUNE="$dir/none" "$info" plan barrier
for line in 'shm.simple.beta' 'shm.simple.beta 1 2' 'shm.simple.gold 1' 'call nan' 'call 0' 'call -1' 'turn 1x' \
    'stream sometimes' "call 0.1$long"; do
    printf 'turn 1\n%s\n' "$line" >"$dir/bad"
    check 1 'line 2, "' env RONDO_TUNE="$dir/bad" "$info" plan barrier
done
check 1 'line 2, "' env RONDO_TUNE="$dir/bad" "$perf" allreduce --ranks 2 -b 8 -e 8

exit $((failures != 0))
