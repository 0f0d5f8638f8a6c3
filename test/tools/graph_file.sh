#!/bin/sh
# rondo-info topo --graph: the searched ring as NCCL's XML, which RONDO_GRAPH_FILE reads; a ring by hand is shown with what
# it carries; files that are wrong are refused with their line. RONDO_TOPO_DUMP_FILE is written by the rank that is named.
set -u
info="$top_builddir/rondo-info"
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
failures=0
fail() {
    echo "failed: $*"
    failures=$((failures + 1))
}
unset RONDO_GRAPH_FILE RONDO_TOPO_FILE RONDO_DEBUG
machine=$srcdir/test/fuzz/corpus/topology/cube_mesh
RONDO_TOPO_FILE=$machine "$info" topo >"$dir/shown" 2>"$dir/said" || {
    grep -q 'expat' "$dir/said" && { echo "built without expat"; exit 77; }
    cat "$dir/said"
    exit 1
}
ring=$(sed -n 's/^  closed here: \([0-9 ]*\);.*/\1/p' "$dir/shown")
[ -n "$ring" ] || fail "no ring is shown"
RONDO_TOPO_FILE=$machine "$info" topo --graph "$dir/graph.xml" || fail "--graph: exit $?"
written=$(sed -n 's/.*<gpu dev="0x\([0-9a-f]*\)".*/\1/p' "$dir/graph.xml" | tr '\n' ' ')
[ "$written" = "$ring " ] || fail "shown $ring, written $written"
grep -q '<graphs version="1">' "$dir/graph.xml" && grep -q 'id="0" pattern="4" .*nchannels="1"' "$dir/graph.xml" ||
    fail "$(cat "$dir/graph.xml")"
RONDO_TOPO_FILE=$machine RONDO_GRAPH_FILE=$dir/graph.xml "$info" topo >"$dir/again" || fail "exit $?"
grep -q "^  RONDO_GRAPH_FILE: $ring; 40.0 GB/s, at worst NVL$" "$dir/again" || fail "$(cat "$dir/again")"
# By number the ring crosses PCIe.
sed 's/<gpu dev.*//' "$dir/graph.xml" | awk '{ print } /<channel>/ { for (i = 0; i < 8; i++) print "<gpu dev=\"" i "\"/>" }' \
    >"$dir/plain.xml"
RONDO_TOPO_FILE=$machine RONDO_GRAPH_FILE=$dir/plain.xml "$info" topo >"$dir/again" || fail "exit $?"
grep -q '^  RONDO_GRAPH_FILE: 0 1 2 3 4 5 6 7; [0-9.]* GB/s, at worst SYS$' "$dir/again" || fail "$(cat "$dir/again")"
RONDO_TOPO_FILE=$machine RONDO_GRAPH_FILE=$dir/plain.xml "$info" topo --graph "$dir/plain2.xml" &&
    grep -c '<gpu dev="0x0"/>' "$dir/plain2.xml" >/dev/null || fail "a given ring is not written"

# A file as a cloud image has it: three devices that nothing is said of, and a switch with a GPU.
printf '<system version="1"><cpu numaid="0"><pci busid="0000:00:16.0"/><pci busid="0000:00:17.0"/></cpu>
<cpu numaid="1"><pci busid="0000:00:1a.0"/><pci busid="0000:10:00.0" class="0x060400"><pci busid="0000:11:00.0"
class="0x030200"/></pci></cpu></system>' >"$dir/cloud.xml"
RONDO_TOPO_FILE=$dir/cloud.xml "$info" topo >"$dir/again" || fail "exit $?"
grep -q '^1 GPU' "$dir/again" && grep -q '^the file has 3 PCIe devices without a class: ' "$dir/again" || fail "$(cat "$dir/again")"
grep -q 'without a class' "$dir/shown" && fail "the cube mesh has all classes: $(cat "$dir/shown")"

# refused PATTERN: by the files that are set
refused() {
    if "$info" topo >"$dir/out" 2>&1 </dev/null; then
        fail "taken: $1"
    fi
    grep -q -e "$1" "$dir/out" || fail "no line '$1': $(cat "$dir/out")"
}
export RONDO_TOPO_FILE RONDO_GRAPH_FILE
RONDO_TOPO_FILE=$machine
RONDO_GRAPH_FILE=$dir/none.xml
refused 'RONDO_GRAPH_FILE=.*none.xml: No such file'
RONDO_GRAPH_FILE=$dir/bad.xml
printf '<graphs version="1">\n<graph id="0" pattern="4" nchannels="2">\n<channel>\n<gpu dev="0"/><gpu dev="0"/></channel></graph></graphs>' \
    >"$dir/bad.xml"
refused 'RONDO_GRAPH_FILE=.*, line 4, <gpu>: the ring has this GPU before'
printf '<graphs version="1"><graph id="0" pattern="4" nchannels="1"><channel>\n<gpu dev="0"/></channel></graph></graphs>' >"$dir/bad.xml"
refused 'RONDO_GRAPH_FILE=.*, line 1: its ring has another number of GPUs; this machine has 8'
unset RONDO_GRAPH_FILE
"$info" topo --graph "$dir/none/such.xml" 2>"$dir/said" && fail "a file in no folder is written"
grep -q 'such.xml cannot be written' "$dir/said" || fail "$(cat "$dir/said")"
[ "$(ls "$dir" | grep -c 'xml\.[0-9]')" = 0 ] || fail "left: $(ls "$dir")"

# A communicator of host memory writes its machine: here the recorded one.
if [ -x "$top_builddir/test/core/groups" ]; then
    RONDO_TOPO_DUMP_FILE=$dir/dump.xml RONDO_TOPO_DUMP_FILE_RANK=1 "$top_builddir/test/core/groups" >"$dir/out" 2>&1 ||
        fail "with a dump: $(cat "$dir/out")"
    RONDO_TOPO_FILE=$machine "$info" topo --xml "$dir/direct.xml"
    cmp "$dir/dump.xml" "$dir/direct.xml" || fail "the dump is another than --xml"
    rm -f "$dir/dump.xml"
    RONDO_TOPO_DUMP_FILE=$dir/dump.xml RONDO_TOPO_DUMP_FILE_RANK=1000 "$top_builddir/test/core/groups" >"$dir/out" 2>&1
    [ ! -e "$dir/dump.xml" ] || fail "a rank that does not exist has written"
fi
[ $failures = 0 ]
