#!/bin/sh
# bench/gpu_many.sh with programs that only say how they were called: every step is run once, what the clock cuts is run
# again by the next call, and a step that fails is told by the exit status of this call and of all later ones.
set -u
bench=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}/bench
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
failed=0

mkdir "$dir/bin" "$dir/tests"
cat >"$dir/bin/nvidia-smi" <<'END'
#!/bin/sh
for i in 0 1 2 3; do echo "GPU $i: a GPU (UUID: $i)"; done
END
cat >"$dir/bin/called" <<END
#!/bin/sh
echo "\$(basename "\$0") \$*" >>"$dir/calls"
! cat "$dir/fail-\$(basename "\$0")" 2>/dev/null
END
for program in matrix programs rails registered copy_engine rounds long_groups narrow life limit; do
    ln -s ../bin/called "$dir/tests/$program"
done
ln -s called "$dir/bin/mpirun"
chmod +x "$dir/bin/nvidia-smi" "$dir/bin/called"
PATH=$dir/bin:$PATH
export PATH

# expect STATUS CALLS SECONDS PART...: so many programs are run
expect() {
    status=$1 calls=$2 seconds=$3
    shift 3
    : >"$dir/calls"
    sh "$bench/gpu_many.sh" -c "$dir/tests" -p perf -b "$dir/tests/limit" -o "$dir/results" -s "$seconds" "$@" >"$dir/out" 2>&1
    got=$? ran=$(grep -vc -- --version "$dir/calls")
    [ $got -eq "$status" ] && [ "$ran" -eq "$calls" ] && return
    echo "$*, $seconds s: exit status $got, not $status; $ran programs, not $calls"
    cat "$dir/out" "$dir/calls"
    failed=1
}

expect 3 0 10 right      # no step is begun that has no time
expect 0 17 600 right    # two programs for 3 and 4 ranks and for 3 layouts, and seven others
expect 0 0 600 right     # all are over
expect 0 1 600 bare
grep -q '^limit 4$' "$dir/calls" || { echo "the bare kernels were not run on 4 GPUs"; failed=1; }
echo 'rondo-perf: rank 0 of 4: reduce of 1048576 bytes failed: unsupported: too long for it' >"$dir/fail-mpirun"
expect 0 47 600 ways     # a way that cannot serve a size is no failure
expect 0 0 600 ways
rm -r "$dir/results"/ways-4
echo 'rondo-perf: 3 wrong elements' >"$dir/fail-mpirun"
expect 1 47 600 ways
expect 1 0 600 ways
rm "$dir/results/life.over" "$dir/results/rails.over"
: >"$dir/fail-life"
expect 1 2 600 right
expect 1 0 600 right     # a failure stays one
expect 2 0 600 nonsense
expect 2 0 60x right
expect 2 0 600 -t -3 right
[ $failed -eq 0 ] && echo "gpu_many: steps are run once, resumed and judged"
exit $failed
