#!/bin/sh
# rondo-info doctor --network with nodes that RONDO_HOSTID plays: 2, 3 and 4 nodes have every way between them measured, a
# second rank of a node is no node, and faults that are planted on one of them are named: a network library that does not
# start, an interface that is not there, a setting on which ranks must agree.
set -u
info="$top_builddir/rondo-info"
"$info" 2>/dev/null | grep -q 'ucx, between nodes' || { echo "rondo is built without UCX"; exit 77; }
mpirun=${MPIEXEC:-$(command -v mpirun)} || { echo "no mpirun"; exit 77; }
[ -n "$mpirun" ] || { echo "no mpirun"; exit 77; }
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
unset RONDO_IFACE RONDO_NET RONDO_PORTS RONDO_UCX_TLS RONDO_HOSTID RONDO_SLOT_BYTES RONDO_DEBUG RONDO_DEBUG_FILE \
    RONDO_TRANSPORT
if "$mpirun" --version 2>/dev/null | grep -q 'Open MPI\|OpenRTE'; then
    mpirun="$mpirun --oversubscribe --bind-to none"
fi
failures=0

# check CODE PATTERN PART...: each part is one more rank, "NODE [VARIABLE=VALUE...]". CODE is good or bad, and PATTERN is
# in a line of the output. A good run has nothing WRONG in it.
check()
{
    code=$1 pattern=$2 command=
    shift 2
    for part; do
        command="$command${command:+ :} -n 1 env RONDO_HOSTID=$part $info doctor --network"
    done
    output=$(timeout 100 $mpirun $command 2>&1 </dev/null)
    status=$?
    case $code$status in good0 | bad1) ;; *) code=no ;; esac
    if [ $code = no ] || ! printf '%s\n' "$output" | grep -q -e "$pattern"; then
        echo "failed: $*: exit $status, wanted a line like '$pattern'; it said:"
        printf '%s\n' "$output"
        failures=$((failures + 1))
    fi
}

check good '^2 ranks on 2 nodes' a b
check good '^1 pair in 2 rounds' a b
check good '^  1 [^ ]*/a  *\.  *[0-9.]*[1-9][0-9]*$' a b
check good '^3 pairs in 6 rounds' a b c
check good '^5 ranks on 4 nodes' a b b c d
check good '^  4 [^ ]*/d  *[0-9.][0-9.]*  *[0-9.][0-9.]*  *[0-9.][0-9.]*  *\.$' a b b c d
check good 'ok     connections' a b c
check good 'note   rates .* times are not judged' a b c
check bad 'WRONG  nodes .* all ranks are on one node' a a
check bad 'WRONG  network library  *[^ ]*/b has none: .*RONDO_NET' a 'b RONDO_NET=nosuch' c
check bad 'WRONG  interface .*/c cannot listen for the others: RONDO_IFACE=nosuch' a b 'c RONDO_IFACE=nosuch'
check bad '^  1 [^ ]*/a  *\.  *[0-9.][0-9.]*  *fails$' a b 'c RONDO_IFACE=nosuch'
check bad 'WRONG  transport .* cannot make a communicator: .*RONDO_SLOT_BYTES' a 'b RONDO_SLOT_BYTES=16K'

# What is no rank of a job says how to start it; a slip of the pen is no whole doctor.
output=$(env -u OMPI_COMM_WORLD_SIZE -u PMI_RANK -u PMI_SIZE -u PMIX_RANK -u PMI_FD -u SLURM_STEP_NUM_TASKS \
    "$info" doctor --network 2>&1)
[ $? = 2 ] && printf '%s\n' "$output" | grep -q 'mpirun -n 2 -H' || { echo "failed: without mpirun: $output"; failures=1; }
output=$("$info" doctor --netwrok 2>&1)
[ $? = 2 ] && printf '%s\n' "$output" | grep -q -e '--network' || { echo "failed: --netwrok: $output"; failures=1; }
[ $failures = 0 ]
