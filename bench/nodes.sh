#!/bin/sh
# Measures operations between played nodes of this machine, over tcp, beside the MPI in turns: against each transport by
# which the MPI does without shared memory. Makes a record, and a table beside the faster of the two.
#
#   bench/nodes.sh [-b BUILD] [-o RESULTS] [-l "1+1 2+2 1+1+1+1"] [-p "ob1 ucx"] [-s] [OPERATION...]
#
#   -b  the build folder (build)            -o  where raw output goes (BUILD/results/DATE-nodes)
#   -l  ranks of each node                  -p  transports of Open MPI: btl tcp under ob1, or UCX's tcp
#   -s  no measurement: only the record and the table of what is in RESULTS
#
# Ranks with another RONDO_HOSTID count as on another node. The MPI does not know of such nodes: it uses tcp between
# all ranks, so layouts with several ranks on a node are kinder to rondo than real nodes would be.
# The record is RESULTS.jsonl. Run this on a quiet machine. Exit: 0 every row at 1.0 (0.95 counts) and right, 1 not,
# 2 usage.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/number.sh"
build=$here/../build
results=
layouts='1+1 2+2 1+1+1+1'
transports='ob1 ucx'
measure=yes
while getopts b:o:l:p:s option; do
    case $option in
    b) build=$OPTARG ;;
    o) results=$OPTARG ;;
    l) layouts=$OPTARG ;;
    p) transports=$OPTARG ;;
    s) measure=no ;;
    *) sed -n '2,14s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
for ranks in $(echo "$layouts" | tr + ' '); do
    number -l "$ranks"
done
perf=$build/rondo-perf
: "${results:=$build/results/$(date +%Y-%m-%d)-nodes}"
mpirun=${MPIEXEC:-mpirun}
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
operations=${*:-allreduce reduce broadcast allgather allgatherv reduce_scatter reduce_scatterv alltoall alltoallv gather
gatherv scatter scatterv sendrecv pingpong barrier}
failed=0

transport_options() {
    case $1 in
    ob1) echo --mca pml ob1 --mca btl tcp,self ;;
    ucx) echo --mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any -x UCX_TLS=tcp,self ;;
    *) echo "nodes: no transport \"$1\": ob1 or ucx" >&2; exit 2 ;;
    esac
}

# One run: LAYOUT TRANSPORT OPERATION; its output is kept, a failure too.
run() {
    layout=$1
    transport=$2
    op=$3
    options=$(transport_options "$transport") || exit 2
    options="$options --oversubscribe --bind-to none"
    what="$op -b 8 -e 8M -f 32 --turns 5 --peer mpi"
    job= node=0 colon=
    for ranks in $(echo "$layout" | tr + ' '); do
        node=$((node + 1))
        job="$job $colon $options -n $ranks env RONDO_HOSTID=node$node $perf $what"
        colon=:
    done
    file=$results/$op-$layout-$transport.txt
    echo "== $op, nodes of $layout ranks, Open MPI by $transport"
    # shellcheck disable=SC2086
    {
        echo "\$ mpirun$job" | sed "s|$perf|rondo-perf|g"
        timeout 300 "$mpirun" $job 2>&1
    } >"$file"
    status=$?
    [ $status -eq 0 ] || { echo "   exit status $status: $file" >&2; failed=1; }
    grep -v '^[#$]' "$file"
}

if [ $measure = yes ]; then
    [ -x "$perf" ] || { echo "nodes: no $perf: build first, or name the build folder with -b" >&2; exit 2; }
    mkdir -p "$results" || exit 1
    for layout in $layouts; do
        for op in $operations; do
            [ "$op-$layout" = pingpong-1+1 ] || [ "$op" != pingpong ] || continue
            for transport in $transports; do
                run "$layout" "$transport" "$op"
            done
        done
    done
fi

"$here/record.py" -o "$results.jsonl" --name "host-$(nproc)core-as-nodes" --date "$(date +%Y-%m-%d)" \
    --command "bench/nodes.sh -l '$layouts' -p '$transports'" "$results" || failed=1
echo
"$here/tables.py" --fastest "$results.jsonl"
"$here/tables.py" --summary "$results.jsonl" || failed=1
echo "raw output: $results, record: $results.jsonl"
exit $failed
