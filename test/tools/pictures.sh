#!/bin/sh
# Pictures: what rondo-perf --plot, rondo-info plan --plot and topo --draw write. Without cairo they must refuse in a
# sentence. With it, an SVG must draw the numbers that it tells: the lines that cairo has drawn are read back from the
# file, brought from points to sizes and times by the axes' ends, and compared with the numbers; and those with the
# table that the same run printed. No time is asserted.
set -u
perf=$top_builddir/rondo-perf
info=$top_builddir/rondo-info
[ -x "$perf" ] && [ -x "$info" ] || { echo "no rondo-perf or rondo-info here"; exit 77; }
unset RONDO_ALGO RONDO_PROTO RONDO_TOPO_FILE RONDO_TUNE
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
failed=0
fail() {
    echo "failed: $*"
    failed=1
}

# refused CODE WORDS COMMAND...
refused() {
    code=$1 words=$2
    shift 2
    said=$(timeout 60 "$@" 2>&1)
    [ $? -eq "$code" ] && printf '%s' "$said" | grep -q -e "$words" || fail "$*: wanted exit $code and '$words': $said"
}

quick='-b 8 -e 4K -f 8 --turns 3 --turn-ms 0.5 -w 2 --ranks 2'
if ! ldd "$(command -v "$perf")" 2>/dev/null | grep -q libcairo && ! ldd "$top_builddir/.libs/rondo-perf" 2>/dev/null |
    grep -q libcairo; then
    refused 2 'built without cairo.*libcairo2-dev' "$perf" allreduce $quick --plot "$dir/a.svg"
    refused 2 'built without cairo' "$info" plan allreduce --plot "$dir/a.svg"
    refused 2 'built without cairo' "$info" topo --draw "$dir/a.svg"
    [ ! -e "$dir/a.svg" ] || fail "a refused picture was written"
    exit $failed
fi
refused 2 'must end in .svg or .png' "$perf" allreduce $quick --plot "$dir/a.gif"
refused 2 'must end in .svg or .png' "$info" plan allreduce --plot "$dir/a"
refused 2 'must end in .svg or .png' "$info" topo --draw "$dir/a"
refused 2 'goes with --plot' "$perf" allreduce $quick --bound "$dir/bound"
refused 2 'measured alone' "$perf" call --ranks 2 --plot "$dir/a.svg"
refused 2 'no such operation' "$perf" allreduce,nonsense $quick
refused 1 'no/such/folder' "$perf" barrier $quick --plot "$dir/no/such/folder/a.svg"
refused 1 'cannot be read' "$info" plan allreduce --plot "$dir/a.svg" --measured "$dir/none"

refused 1 'no algorithm "rign"' env RONDO_ALGO=rign "$info" plan allreduce --plot "$dir/a.svg"
RONDO_PROTO=ll timeout 60 "$info" plan allreduce --ranks 4 --plot "$dir/lines.svg" ||
    fail "a protocol that serves short sizes alone"
grep -q '^    1024 ' "$dir/lines.svg" && ! grep -q '^    1048576 ' "$dir/lines.svg" || fail "what lines serve"

cat >"$dir/bound" <<'END'
# host_bound 1.0: allreduce, float32 sum, 2 ranks, bare
           8           2      0.125      0.1        0.2
         512         128      0.5        0.4        0.6
# host_bound 1.0: allreduce, float32 sum, 4 ranks, bare
           8           2      7.125      0.1        0.2
END
# longer than a legend has room for
peer=self:tree,allgather=ring,reduce_scatter=ring,broadcast=tree,alltoall=direct
timeout 60 "$perf" allreduce,allgather,barrier $quick --peer $peer --bound "$dir/bound" \
    --plot "$dir/perf.svg" >"$dir/perf.txt" 2>&1 || { cat "$dir/perf.txt"; fail "rondo-perf --plot"; }
cat >"$dir/record" <<'END'
{"record":"planted"}
{"op":"allreduce","ranks":16,"nodes":"16","mode":"host","algo":"ring/ll","bytes":1024,"us":12.5}
{"op":"allreduce","ranks":8,"nodes":"8","mode":"host","algo":"ring","bytes":2048,"us":99}
END
timeout 60 "$info" plan allreduce --ranks 16 --cores 16 --plot "$dir/plan.svg" --measured "$dir/record" ||
    fail "rondo-info plan --plot"
timeout 60 "$info" plan allreduce 4K --ranks 16 --cores 16 >"$dir/plan.txt" || fail "rondo-info plan"
for machine in h200-8.gpus four-numa.xml; do
    RONDO_TOPO_FILE=$top_srcdir/test/topo/$machine timeout 60 "$info" topo --draw "$dir/$machine.svg" 2>"$dir/said" ||
        grep -q hwloc "$dir/said" || { cat "$dir/said"; fail "rondo-info topo --draw of $machine"; }
done
timeout 60 "$perf" allreduce $quick --plot "$dir/perf.png" >/dev/null || fail "rondo-perf --plot of a PNG"
[ "$(head -c 4 "$dir/perf.png" | tail -c 3)" = PNG ] || fail "perf.png is no PNG"
command -v python3 >/dev/null || { echo "no python3: the SVGs are not read"; exit $failed; }
python3 "$top_srcdir/test/tools/pictures.py" "$dir" || failed=1
exit $failed
