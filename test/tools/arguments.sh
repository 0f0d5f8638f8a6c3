#!/bin/sh
# The command lines of rondo's programs: what is no number, or out of range, is a usage error that names it. So is a
# library for rondo-run at whose path the loader would take it for two.
set -u
build=${top_builddir:-.} source=${top_srcdir:-$(dirname "$0")/../..}
[ -x "$build/rondo-perf" ] || { echo "nothing is built here"; exit 77; }
# A number that is taken all the same must not lead to an hour of measuring.
export RONDO_IFACE=nosuch RONDO_TUNE=/nonexistent
failures=0

# bad PATTERN COMMAND...: exit status 2, and a line like PATTERN
bad() {
    pattern=$1
    shift
    output=$(timeout 20 "$@" 2>&1 </dev/null)
    status=$?
    [ $status = 2 ] && printf '%s\n' "$output" | grep -q -e "$pattern" && return
    echo "failed: $*: exit $status, wanted 2 with a line like '$pattern'; it said:"
    printf '%s\n' "$output" | head -5
    failures=$((failures + 1))
}

perf=$build/rondo-perf info=$build/rondo-info tune=$build/rondo-tune ras=$build/rondo-ras run=$build/tools/rondo-run
# Each program with everything that is no number, and each option with one of them.
for n in '' x 3x -3 +3 ' 3' '3 ' 3.5 0x3 1e2 99999999999999999999 4294967297; do
    bad "--turns $n: not a" "$perf" barrier --turns "$n"
    bad "--ranks \"$n\": a number" "$info" plan allreduce 8 --ranks "$n"
    bad NODESxRANKS "$info" memory "2x$n"
    bad 'rondo-tune --help' "$tune" --rounds "$n"
    bad '--job needs' "$ras" who --job "$n"
    [ ! -e "$run" ] || [ "$n" = 4294967297 ] || bad "--after=$n: a number" sh "$run" --after="$n" true
done
for option in -r -n -w -f --window --pieces --ranks; do
    bad "$option 3x: not a" "$perf" barrier "$option" 3x
done
for option in --nodes --cores --root --rank --multiprocessors; do
    bad "$option \"3x\": a number" "$info" plan allreduce 8 "$option" 3x
done
bad 'a number of cores' "$info" memory --cores 3x
bad NODESxRANKS "$info" memory 4294967297x1
bad NODESxRANKS "$info" memory 1024x1025
bad NODESxRANKS "$info" scale 2x3x
bad 'rondo-tune --help' "$tune" --ranks 2,3x
bad '-n needs' "$ras" top -n 3x
bad 'named by --job: 4711' "$ras" who 4711
bad 'nothing more to say.*: x' "$ras" who x
bad '--json; this has not: top' "$ras" top --json
bad 'see: rondo-ras --help' "$ras" who -y
for help in -h help --help; do
    "$ras" $help | grep -q SYNOPSIS || { echo "rondo-ras $help: no help"; failures=$((failures + 1)); }
done
[ ! -e "$run" ] || bad '--compare=3x: a number' sh "$run" --compare=3x true
for n in '' x 3x -3 +3 ' 3' 0x3 nan inf 1e99; do
    bad "-e $n: not a" "$perf" allreduce --ranks 2 -e "$n"
    bad '-d needs' "$ras" top -d "$n"
done
for option in -b --offset --turn-ms; do
    bad "$option 3x: not a" "$perf" allreduce --ranks 2 "$option" 3x
done
bad '--stall needs' "$ras" monitor --stall 3x
bad '--timeout needs' "$ras" stacks --timeout 3x
bad 'not a size' "$perf" allreduce -e 16384G
for n in -1 1e3 4294967295 99999999999999999999; do
    bad '--user needs' "$ras" list --user "$n"
done
if [ -e "$run" ]; then
    dir=$(mktemp -d) || exit 1
    trap 'rm -rf "$dir"' EXIT
    trap 'exit 1' HUP INT TERM
    for name in 'a b.so' 'a:b.so'; do
        : >"$dir/$name"
        bad "$name cannot be preloaded.*.ln -s FILE " sh "$run" --library "$dir/$name" true
    done
    # A name without a folder is a file here, not one among the system's libraries.
    : >"$dir/c.so"
    run=$(cd "$(dirname "$run")" && pwd)/rondo-run
    preloaded=$(cd "$dir" && sh "$run" --library c.so sh -c 'echo "$LD_PRELOAD"' 2>/dev/null)
    case $preloaded in
    */c.so*) ;;
    *) echo "--library c.so preloads '$preloaded'"; failures=$((failures + 1)) ;;
    esac
fi
[ $failures = 0 ]
