#!/bin/sh
# The models of this folder hold, and each fault that is planted in one is found. A model holds when Spin has been
# through all of its states and has found nothing: a search that was cut short, by its depth or for lack of memory, is a
# failure. With arguments: those models alone, "ll" for ll.pml. Prints the states of each, and what each fault runs into.
set -u
here=$(cd "$(dirname "$0")" && pwd)
depth=500000 # steps of one run of a model
memory=2000  # MB

# found MODEL BUG: the line about it. The search for a fault ends where it is found: it takes less than to optimise it.
found() {
    optimise=-O0
    [ "$2" != 0 ] || optimise=-O1
    mkdir "$2.$1" && cd "$2.$1" && cp "$here/memory.pml" "$here/$1.pml" . || exit 1
    { spin -a -DBUG="$2" "$1.pml" && ${CC:-cc} $optimise -DSAFETY -DMEMLIM=$memory -o pan pan.c; } >made 2>&1 ||
        { echo "$1 $2 WRONG: not made: $(tail -n 1 made)"; exit; }
    ./pan -m$depth -w20 >said 2>&1
    states=$(sed -n 's/^ *\([0-9][0-9]*\) states, stored.*/\1/p' said)
    why=$(sed -n 's/^pan:1: \(assertion violated\|invalid end state\).*/\1/p' said)
    if [ "$2" != 0 ]; then
        [ -n "$why" ] && echo "$1 $2 found: $why" || echo "$1 $2 WRONG: the fault was not found"
    elif grep -q 'errors: 0$' said && [ -n "$states" ] &&
        ! grep -q 'search depth too small\|out of memory\|reached -DMEMLIM\|not completed' said; then
        echo "$1 $2 holds: $states states"
    else
        echo "$1 $2 WRONG: $(grep 'errors:\|^pan:\|^error' said | tr '\n' ' ')"
    fi
}

if [ "${1:-}" = --one ]; then
    found "$2" "$3"
    exit
fi
command -v spin >/dev/null 2>&1 || { echo "spin is not installed: the models were not checked"; exit 77; }
[ $# -gt 0 ] || set -- $(cd "$here" && ls ./*.pml | sed 's/^\.\///; s/\.pml$//' | grep -v '^memory$')
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work" || exit 1
for model in "$@"; do
    faults=$(sed -n 's/^ \* BUG=\([0-9]*\) .*/\1/p' "$here/$model.pml")
    [ "$(echo "$faults" | wc -l)" -ge 3 ] || { echo "$model: fewer than three planted faults"; exit 1; }
    for fault in 0 $faults; do
        echo "$model $fault"
    done
done >wanted
# On all cores, behind whatever else runs.
nice xargs -n 2 -P "${RONDO_QUICKSTART_JOBS:-$(nproc 2>/dev/null || echo 2)}" sh "$here/check.sh" --one <wanted >lines
sort lines
[ "$(wc -l <lines)" -eq "$(wc -l <wanted)" ] && ! grep -q WRONG lines
