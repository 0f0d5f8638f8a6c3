#!/bin/sh
# Rings, chains and trees in an order of the machine's, on simulated GPUs: every operation and type is right by protocol
# simple and by programs, alone and beside what goes by number, in groups and graphs, of whatever root, on 3, 4 and 8 ranks
# as threads and processes. That the order is taken is test/sim/ring_order's affair. On played nodes each has the order
# of its own GPUs, for the parts of an operation that are done within it.
set -e
test -x test/sim/matrix || {
    echo "built without CUDA: there is nothing to simulate"
    exit 77
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

# graph FILE RANK...
graph() {
    file=$1
    shift
    {
        echo '<graphs version="1"><graph id="0" pattern="4" nchannels="1"><channel>'
        for rank; do
            echo "<gpu dev=\"$rank\" rank=\"$rank\"/>"
        done
        echo '</channel></graph></graphs>'
    } >"$file"
}
graph "$dir/3" 0 2 1
graph "$dir/4" 3 1 0 2
graph "$dir/8" 5 0 3 7 1 6 2 4
export RONDO_GRAPH_FILE
RONDO_GRAPH_FILE=$dir/3 test/sim/matrix --ranks 3 --forced ring/simple,chain/simple,tree/ll128 --share 3/40
RONDO_GRAPH_FILE=$dir/4 test/sim/matrix --ranks 4 --kind threads --forced ring/simple,chain/simple,tree/ll128 --share 5/40
RONDO_GRAPH_FILE=$dir/4 test/sim/matrix --ranks 4 --share 7/100
RONDO_GRAPH_FILE=$dir/8 test/sim/matrix --ranks 8 --kind threads --forced ring/simple,chain/simple,tree/ll128 --share 9/200
RONDO_GRAPH_FILE=$dir/4 RONDO_PROTO=simple test/sim/programs --ranks 4
RONDO_GRAPH_FILE=$dir/4 SIM_NO_PEERS=1 test/sim/matrix --ranks 4 --forced ring/simple,chain/simple --share 3/60

# node CPU BUS...: a socket for each bus number, and on it a switch with that GPU and the one whose number is two more
node() {
    cpu=$1
    shift
    for first; do
        printf '<cpu numaid="%d"><pci busid="0000:%d0:00.0" class="0x060400">' "$cpu" $((cpu + 2))
        for bus in "$first" $((first + 2)); do
            printf '<pci busid="0000:0%d:00.0" class="0x030200"><gpu dev="%d"/></pci>' "$bus" $((bus - 1))
        done
        echo '</pci></cpu>'
        cpu=$((cpu + 1))
    done
}
{
    echo '<system version="1">'
    node 0 1 2
    node 2 5 6
    echo '</system>'
} >"$dir/nodes.xml"
unset RONDO_GRAPH_FILE
for forced in ring/simple,chain/simple,tree/ll128 ""; do
    RONDO_TOPO_FILE=$dir/nodes.xml RONDO_DEBUG=info RONDO_DEBUG_FILE=$dir/log \
        test/sim/matrix --nodes 4+4 ${forced:+--forced $forced} --share 3/400
done
for order in '0 \(2 . .\|. . 2\)' '4 \(6 . .\|. . 6\)'; do # beside the one behind the same switch
    grep -q "visit the ranks of this node in the order $order, as their links lie" "$dir/log" || {
        echo "a node's GPUs are not visited as their links lie"
        exit 1
    }
done
