#!/bin/sh
# mpirun over hosts that network namespaces play, for each MPI that is here: the launcher sits beside the switch and
# starts its daemons on the hosts through `play --on`, as it would by ssh. The program in README.md says the right sum on
# every rank, the conjugate gradients come out right, and rondo has seen as many nodes as there are hosts.
set -u
source=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
build=$(cd "${top_builddir:-.}" && pwd)
"$build/rondo-info" 2>/dev/null | grep -q 'ucx' || { echo "rondo is built without UCX"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

# The launchers call it with a host's address, and give the rest to a shell, as ssh does.
cat >"$dir/agent" <<EOF2
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
host=\$((\${1##*.} - 1))
shift
exec "$build/test/played/play" --on \$host sh -c "\$*"
EOF2
chmod +x "$dir/agent"
cat >"$dir/job" <<EOF2
#!/bin/sh
# MPI RANKS HOSTS PROGRAM...
mpi=\$1 ranks=\$2 hosts=\$3
shift 3
if [ \$mpi = openmpi ]; then
    exec mpirun.openmpi --mca plm_rsh_agent "$dir/agent" --mca oob_tcp_if_include 10.99.7.0/24 \\
        --mca btl tcp,self --mca btl_tcp_if_include 10.99.7.0/24 --mca pml ob1 --bind-to none --oversubscribe \\
        -x RONDO_DEBUG=info -x UCX_LOG_LEVEL=fatal -n \$ranks -H \$hosts "\$@"
fi
exec mpirun.mpich -launcher rsh -launcher-exec "$dir/agent" -iface br0 -genv RONDO_DEBUG info \\
    -genv UCX_LOG_LEVEL fatal -n \$ranks -hosts \$hosts "\$@"
EOF2
chmod +x "$dir/job"
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM

# run MPI NHOSTS RANKS HOSTS PROGRAM
run() {
    mpi=$1 nhosts=$2 ranks=$3 hosts=$4 program=$5
    timeout 60 "$build/test/played/play" "$nhosts" "$dir/job" "$mpi" "$ranks" "$hosts" "$program" >"$dir/out" 2>&1 \
        </dev/null
    status=$?
    [ $status != 77 ] || { cat "$dir/out"; exit 77; }
    [ $status = 0 ] || { cat "$dir/out"; echo "$mpi, $ranks ranks on $hosts: $program: status $status"; exit 1; }
    grep -q "$ranks ranks on $nhosts nodes" "$dir/out" ||
        { cat "$dir/out"; echo "$mpi: rondo has not seen $ranks ranks on $nhosts nodes"; exit 1; }
}

sed -n '/^```c$/,/^```$/p' "$source/README.md" | sed '/^```/d' >"$dir/sum.c"
tried=0
for mpi in openmpi mpich; do
    mpicc=$(command -v mpicc.$mpi) && command -v mpirun.$mpi >/dev/null || { echo "no $mpi"; continue; }
    for program in "$dir/sum.c" "$source/examples/cg.c"; do
        $mpicc "$program" -I"$source/lib" -L"$build/.libs" -lrondo -lm -Wl,-rpath,"$build/.libs" \
            -o "$dir/$(basename "$program" .c).$mpi" || { echo "$mpicc does not compile $program"; exit 1; }
    done
    run $mpi 2 3 10.99.7.1:2,10.99.7.2:1 "$dir/sum.$mpi"
    said=$(grep -c 'the sum over 3 ranks is 3$' "$dir/out")
    [ "$said" = 3 ] || { cat "$dir/out"; echo "under $mpi, $said of 3 ranks said the right thing"; exit 1; }
    run $mpi 2 4 10.99.7.1:2,10.99.7.2:2 "$dir/cg.$mpi"
    run $mpi 3 3 10.99.7.1:1,10.99.7.2:1,10.99.7.3:1 "$dir/sum.$mpi"
    tried=$((tried + 1))
    echo "$mpi: good"
done
[ $tried -gt 0 ] || exit 77
