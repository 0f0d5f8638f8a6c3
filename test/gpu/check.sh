#!/bin/sh
# Tests on the GPUs of this machine, with the programs beside this script: no build tree is needed.
#
#   check-gpu [--seed S] [--shard I/N] [--seconds S] [--steps N] [--times N] [--part NAME] [--programs FOLDER]
#
#   --seed     of all that is drawn (1)         --shard    every N-th case of the matrix, from the I-th (few, drawn)
#   --times    communicators made and destroyed by life, by processes and by threads (24)
#   --seconds, or --steps, of random programs, each (10 seconds)
#   --part     matrix, forced, simple, programs, scheduled, life, grow, suspend, signature, verdicts, lengths, groups,
#              registered, copy_engine, rounds, narrow, onesided, user_kernels, window_host, nodes, rails, many, shim or
#              gdr (wants UCX with CUDA, and RONDO_UCX_TLS=tcp,cuda_copy,cuda_ipc);
#              and, if they are named, mps (ranks that share GPUs, under MPS), sanitizers (compute-sanitizer's tools,
#              each of which must report a planted fault; on two GPUs, for kernels of one GPU go in turns there) and
#              delays (`make gpu-delays`: kernels that are late and out of order, alone and with faults that must be
#              found)
#
# At the end it says which share of the matrix (operation x type x op x size x ranks x processes or threads) was run.
# Exit: 0 all right, 1 not, 2 usage, 77 there is no GPU.
set -u
here=$(cd "$(dirname "$0")" && pwd)
seed=1
shard=
length="--seconds 10" # of a random program
times=24
only=
while [ $# -gt 1 ]; do
    case $1 in
    --seed) seed=$2 ;;
    --shard) shard=$2 ;;
    --seconds | --steps) length="$1 $2" ;;
    --times) times=$2 ;;
    --part) only=$2 ;;
    --programs) here=$2 ;;
    *) break ;;
    esac
    shift 2
done
[ $# -eq 0 ] || { sed -n '2,18s/^# \{0,1\}//p' "$0" >&2; exit 2; }

passed=0
failed=0
ran=0
cases=0
exec 4>&1
said=$(mktemp) || exit 1
trap 'rm -f "$said"' EXIT
trap 'exit 1' HUP INT TERM
# part PROGRAM OPTIONS...: its output as it comes; what fails is said again at the end.
part() {
    echo "== $*"
    program=$1
    shift
    status=$({ { "$here/$program" "$@"; echo $? >&3; } | tee "$said" >&4; } 3>&1)
    ran=$((ran + $(awk '/^matrix: .* cases/ { n += $2 } END { print n + 0 }' "$said")))
    cases=$((cases + $(awk '/^matrix: .* cases/ { n += $4 } END { print n + 0 }' "$said")))
    case $status in
    0) passed=$((passed + 1)) ;;
    77) echo "there is no CUDA device here"; exit 77 ;;
    *) failed=$((failed + 1)); echo "FAIL: $program $* (status $status)" ;;
    esac
}

wanted() {
    [ -z "$only" ] || [ "$only" = "$1" ]
}

if wanted matrix; then
    part matrix --seed "$seed" ${shard:+--share "$shard"}
fi
every=oneshot/ll,oneshot/ll128,oneshot/sentinel,twoshot/ll128,twoshot/sentinel
every=$every,ring/ll,ring/ll128,ring/sentinel,ring/simple,chain/ll128,chain/simple,tree/ll128,pat/ll128,rd/ll128
every=$every,binomial/ll128,messages/ll128,messages/simple
rings=ring/ll,ring/ll128,ring/sentinel
if wanted forced; then
    for ranks in 2 4 8; do
        part matrix --seed "$seed" --ranks $ranks --forced $every ${shard:+--share "$shard"}
    done
    RONDO_CUDA_BANK=16K # small enough that an allreduce by ring takes both banks as one
    export RONDO_CUDA_BANK
    for ranks in 2 4 8; do
        part matrix --seed "$seed" --ranks $ranks --operation allreduce --forced $rings ${shard:+--share "$shard"}
    done
    unset RONDO_CUDA_BANK
fi
if wanted simple; then # rings, chains and messages, however short, by slices of plain data; then short ones by lines
    RONDO_PROTO=simple
    export RONDO_PROTO
    part matrix --seed "$seed" ${shard:+--share "$shard"}
    part programs --seed "$seed" $length
    unset RONDO_PROTO
    RONDO_CUDA_LONG=4096
    export RONDO_CUDA_LONG
    part programs --seed "$seed" $length
    unset RONDO_CUDA_LONG
fi
if wanted programs; then
    part programs --seed "$seed" $length
fi
if wanted scheduled; then # programs of lib/sched beside all other kernels
    moves=allgather=pat,gather=binomial,scatter=binomial
    RONDO_ALGO=allreduce=tree,reduce=tree,broadcast=tree,reduce_scatter=pat,$moves
    export RONDO_ALGO
    part programs --seed "$seed" $length
    RONDO_ALGO=allreduce=pat,reduce=binomial,broadcast=binomial,$moves
    part programs --seed "$seed" $length
    RONDO_ALGO=allreduce=rd
    part programs --seed "$seed" $length
    unset RONDO_ALGO
fi
if wanted life; then
    part life --times "$times"
fi
if wanted grow; then
    part grow --seed "$seed"
fi
if wanted suspend; then
    part suspend
    part suspend --host-windows
    part force_next
    part launch_event
fi
if wanted signature; then
    part signature
fi
if wanted verdicts; then
    part verdicts --seed "$seed" --count 40
fi
if wanted lengths; then
    part lengths
fi
if wanted groups; then
    part long_groups
    part fused --seed "$seed"
fi
if wanted registered; then
    part registered --seed "$seed"
fi
if wanted copy_engine; then
    part copy_engine --seed "$seed"
    part staging --seed "$seed"
fi
if wanted rounds; then
    part rounds
fi
if wanted narrow; then
    part narrow
fi
if wanted onesided; then
    part onesided --seed "$seed"
fi
if wanted user_kernels; then # and the examples that have kernels of their own, a rank on each GPU
    part user_kernels --seed "$seed"
    examples=
    [ -x "$here/halo_device" ] || examples=../../examples/
    part ${examples}allreduce_rmsnorm
    part ${examples}halo_device
fi
if wanted window_host; then # as where GPUs do not reach each other
    RONDO_P2P=0
    export RONDO_P2P
    part matrix --seed "$seed" ${shard:+--share "$shard"}
    part programs --seed "$seed" $length
    part long_groups
    part life
    unset RONDO_P2P
fi
if wanted nodes; then # played on this machine: their ranks meet over the network
    for nodes in 1+1 2+2 3+1 1+1+1+1 3+3 2+2+2 abab; do
        part matrix --seed "$seed" --nodes $nodes ${shard:+--share "$shard"}
        part programs --seed "$seed" $length --nodes $nodes
    done
    part mixed --seed "$seed" --nodes
    part rounds --nodes
    part narrow --nodes
    part signature --nodes
    part life --nodes --times "$times"
    part suspend --nodes
    part force_next --nodes
fi
if wanted rails; then # between nodes, and the ranks of one by their own kernels
    part rails --seed "$seed" --whole
fi
if wanted many; then # more ranks than map each other's memory: few channels each, or a GPU has none for the last ones
    CUDA_DEVICE_MAX_CONNECTIONS=2
    export CUDA_DEVICE_MAX_CONNECTIONS
    part matrix --seed "$seed" --ranks 18 --kind processes ${shard:+--share "$shard"}
    part matrix --seed "$seed" --nodes 10+9 ${shard:+--share "$shard"}
    part programs --seed "$seed" $length --nodes 9+9
    part rounds --many
    part life --part many --times 5 --on 10+10
    unset CUDA_DEVICE_MAX_CONNECTIONS
fi
if wanted gdr; then
    part gdr --seed "$seed"
fi
if wanted shim; then
    part shim --seed "$seed"
fi

# A daemon of our own, so that nobody else's GPU work goes through it.
if [ "$only" = mps ]; then
    command -v nvidia-cuda-mps-control >/dev/null || { echo "there is no nvidia-cuda-mps-control here"; exit 77; }
    CUDA_MPS_PIPE_DIRECTORY=$(mktemp -d)
    CUDA_MPS_LOG_DIRECTORY=$CUDA_MPS_PIPE_DIRECTORY
    export CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
    nvidia-cuda-mps-control -d || exit 1
    part matrix --seed "$seed" --kind processes --ranks 4 ${shard:+--share "$shard"}
    part programs --seed "$seed" $length
    grep -q 'NEW CLIENT' "$CUDA_MPS_LOG_DIRECTORY/control.log" || { failed=$((failed + 1)); echo "FAIL: not by MPS"; }
    echo quit | nvidia-cuda-mps-control
    rm -rf "$CUDA_MPS_PIPE_DIRECTORY"
fi

# sanitized TOOL WANTED PROGRAM OPTIONS...: 0 is wanted where nothing is wrong, 9 where a fault was planted. Answers of
# the CUDA API are the library's to judge: "peer access is enabled already" is one of them, and no error.
sanitized() {
    tool=$1
    wanted_status=$2
    shift 2
    echo "== compute-sanitizer --tool $tool $*"
    program=$1
    shift
    compute-sanitizer --tool "$tool" $([ "$tool" = memcheck ] && echo --report-api-errors no) --error-exitcode 9 "$here/$program" "$@" >"$said" 2>&1
    status=$?
    tail -n 2 "$said"
    if [ $status -eq "$wanted_status" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        tail -n 30 "$said"
        echo "FAIL: $tool of $program $* (status $status, should be $wanted_status)"
    fi
}

if [ "$only" = sanitizers ]; then
    command -v compute-sanitizer >/dev/null || { echo "there is no compute-sanitizer here"; exit 77; }
    for tool in memcheck initcheck synccheck racecheck; do
        sanitized $tool 9 sanitizer_planted $tool
        sanitized $tool 0 sanitizer_planted none
        sanitized $tool 0 matrix --seed "$seed" --kind threads --ranks 2 ${shard:+--share "$shard"}
        # The families that a message of a few kilobytes goes by only if told to.
        forced=twoshot/ll128,twoshot/sentinel,ring/sentinel,ring/simple,chain/ll128,chain/simple,tree/ll128,pat/ll128
        RONDO_CUDA_BANK=16K
        export RONDO_CUDA_BANK
        sanitized $tool 0 matrix --seed "$seed" --kind threads --ranks 2 --forced $forced --share "${shard:-3/400}"
        unset RONDO_CUDA_BANK
    done
fi

# found PLANT PROGRAM OPTIONS...: right as it is; with that fault it fails, with one of some seeds at least.
found() {
    plant=$1
    shift
    RONDO_TIMEOUT_MS=20000
    export RONDO_TIMEOUT_MS
    part "$@"
    for DELAYS_SEED in $seed $((seed + 1)) $((seed + 2)) $((seed + 3)); do
        echo "== DELAYS_PLANT=$plant DELAYS_SEED=$DELAYS_SEED $*"
        DELAYS_PLANT=$plant timeout 120 "$here/$@" >"$said" 2>&1
        status=$?
        [ $status -ne 1 ] || break
    done
    unset RONDO_TIMEOUT_MS
    if [ $status -eq 1 ]; then
        grep -v '^delays of' "$said" | head -n 2
        echo "found"
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL: $*: a planted $plant was not found (status $status)"
    fi
}

if [ "$only" = delays ]; then
    [ -x "$here/delayed/matrix" ] || { echo "make gpu-delays, or install-gpu-delays, brings what this runs"; exit 2; }
    gpus=$(nvidia-smi -L 2>/dev/null | awk 'NR <= 8 { n++ } END { print n + 0 }')
    ranks=$((gpus > 2 ? gpus : 2))
    kind=processes # which one GPU runs in turns: nothing is seen half there
    [ "$gpus" -ge 2 ] || kind=threads
    export DELAYS_SEED
    DELAYS_SEED=$seed
    part delayed/matrix --seed "$seed" --ranks "$ranks" --forced $every ${shard:+--share "$shard"}
    DELAYS_SEED=$((DELAYS_SEED + 1))
    RONDO_CUDA_BANK=16K # an allreduce by ring takes both banks as one
    export RONDO_CUDA_BANK
    part delayed/matrix --seed "$seed" --ranks "$ranks" --operation allreduce --forced $rings ${shard:+--share "$shard"}
    unset RONDO_CUDA_BANK
    for DELAYS_SEED in $seed $((seed + 1)) $((seed + 2)); do
        part delayed/matrix --seed "$DELAYS_SEED" --ranks "$ranks" ${shard:+--share "$shard"}
        part delayed/programs --seed "$DELAYS_SEED" --ranks "$ranks" $length
        part delayed/registered --seed "$DELAYS_SEED"
    done
    for forced in ring/simple chain/simple messages/simple; do
        found release delayed/matrix --seed "$seed" --ranks 2 --kind $kind --forced $forced
    done
    for forced in ring/ll128 chain/ll128 messages/ll128; do
        found lines delayed/matrix --seed "$seed" --ranks 2 --kind $kind --forced $forced
    done
fi
[ $cases -eq 0 ] || echo "the matrix: $ran of $cases cases, $((100 * ran / cases)) %; other seeds and shards run others"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
