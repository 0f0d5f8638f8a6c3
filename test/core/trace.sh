#!/bin/sh
# RONDO_DEBUG=trace prints a line for each call, with what was chosen for it, also for calls that are repeated, and `plan`
# prints none of them.
set -e
log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 1' HUP INT TERM

calls() { # LEVEL: counts the lines of rank 0's calls
    RONDO_DEBUG=$1 RONDO_DEBUG_FILE=$log ./rondo-perf allreduce --ranks 2 -b 8 -e 8 -n 5 -w 0 --turns 2 -c 0 >/dev/null
    grep -c ' 0/2 .*calls allreduce: count 2, type float32, op sum, root 0, .* by ' "$log" || :
}
n=$(calls trace)
test "$n" -ge 10 || {
    echo "$n lines for 10 calls and more"
    cat "$log"
    exit 1
}
: >"$log"
n=$(calls plan)
test "$n" = 0 || {
    echo "$n lines at the level plan"
    exit 1
}
