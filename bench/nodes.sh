#!/bin/sh
# Measures operations between played nodes of this machine, over tcp, beside the MPI in turns: against each way in which
# the MPI can do without shared memory. Says how rondo stands to the faster one, row by row.
#
#   bench/nodes.sh [-b BUILD] [-o RESULTS] [-l "1+1 2+2 1+1+1+1"] [-p "ob1 ucx"] [-s] [OPERATION...]
#
#   -b  the build folder (build)            -o  where raw output goes (bench/results/DATE-nodes)
#   -l  ranks of each node                  -p  ways of Open MPI: btl tcp under ob1, or UCX's tcp
#   -s  no measurement: the summary alone, of what is in RESULTS
#
# Ranks with another RONDO_HOSTID count as on another node. The MPI does not know of such nodes: it goes by tcp between
# all ranks, so layouts with several ranks on a node are kinder to rondo than real nodes would be.
# Run it on a quiet machine. Exit: 0 every row at 1.0 (0.95 counts) and right, 1 not, 2 usage.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$here/../build
results=$here/results/$(date +%Y-%m-%d)-nodes
layouts='1+1 2+2 1+1+1+1'
ways='ob1 ucx'
measure=yes
while getopts b:o:l:p:s option; do
    case $option in
    b) build=$OPTARG ;;
    o) results=$OPTARG ;;
    l) layouts=$OPTARG ;;
    p) ways=$OPTARG ;;
    s) measure=no ;;
    *) sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
perf=$build/rondo-perf
mpirun=${MPIEXEC:-mpirun}
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
operations=${*:-allreduce reduce broadcast allgather allgatherv reduce_scatter reduce_scatterv alltoall alltoallv gather
gatherv scatter scatterv sendrecv pingpong barrier}
failed=0

way_options() {
    case $1 in
    ob1) echo --mca pml ob1 --mca btl tcp,self ;;
    ucx) echo --mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any -x UCX_TLS=tcp,self ;;
    *) echo "nodes: no way \"$1\": ob1 or ucx" >&2; exit 2 ;;
    esac
}

# One run: LAYOUT WAY OPERATION; its output is kept, a failure too.
run() {
    layout=$1
    way=$2
    op=$3
    options=$(way_options "$way") || exit 2
    options="$options --oversubscribe --bind-to none"
    what="$op -b 8 -e 8M -f 32 --turns 5 --peer mpi"
    job= node=0 colon=
    for ranks in $(echo "$layout" | tr + ' '); do
        node=$((node + 1))
        job="$job $colon $options -n $ranks env RONDO_HOSTID=node$node $perf $what"
        colon=:
    done
    file=$results/$op-$layout-$way.txt
    echo "== $op, nodes of $layout ranks, Open MPI by $way"
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
            for way in $ways; do
                run "$layout" "$way" "$op"
            done
        done
    done
fi

# The ratio to the faster MPI is the smaller of the two.
awk '
function human(n) {
    if (n >= 1048576) return n / 1048576 " MB"
    return n >= 1024 ? n / 1024 " KB" : n " B"
}
FNR == 1 { file = FILENAME; sub(/.*\//, "", file); sub(/\.txt$/, "", file); split(file, part, "-") }
/^[#$]/ || NF < 12 || $1 + 0 != $1 { next }
{
    op = part[1]; layout = part[2]; key = op SUBSEP layout SUBSEP $1
    if (!((op, $1) in seen)) { seen[op, $1] = 1; rows++; row_op[rows] = op; row_size[rows] = $1 + 0 }
    if (!(layout in column)) { column[layout] = ++columns; name[columns] = layout }
    if (!(key in least) || $10 < least[key]) { least[key] = $10; at[key] = $3; by[key] = part[3] }
    if ($8 != "0" && $8 != "N/A") wrong++
}
END {
    printf "| operation | size |"; for (c = 1; c <= columns; c++) printf " %s: us | ratio |", name[c]
    printf "\n|---|---|"; for (c = 1; c <= columns; c++) printf "---|---|"; print ""
    for (r = 1; r <= rows; r++) {
        printf "| %s | %s |", row_op[r], row_op[r] == "barrier" ? "-" : human(row_size[r])
        for (c = 1; c <= columns; c++) {
            key = row_op[r] SUBSEP name[c] SUBSEP row_size[r]
            if (!(key in least)) { printf " - | - |"; continue }
            cells++; if (least[key] < 0.95) below++
            printf " %.3g | %s%.2f%s %s |", at[key], least[key] < 0.95 ? "" : "**", least[key], least[key] < 0.95 ? "" : "**", by[key]
        }
        print ""
    }
    printf "\n%d rows, %d below 1.0 (0.95 counts), %d wrong\n", cells, below, wrong
    exit below || wrong || !cells
}' "$results"/*-*+*-*.txt >"$results/summary.txt" || failed=1
echo
cat "$results/summary.txt"
echo "raw output: $results"
exit $failed
