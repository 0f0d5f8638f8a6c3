#!/bin/sh
# CUDA communicators between played nodes, on GPUs made of threads: the part of check-gpu that is about nodes.
set -u
here=${top_builddir:-.}
[ -x "$here/test/sim/matrix" ] || { echo "built without CUDA"; exit 77; }
"$here/rondo-info" 2>&1 | grep -q 'ucx [0-9]' || { echo "built without UCX"; exit 77; }
timeout 900 sh "${srcdir:-.}/test/gpu/check.sh" --programs "$here/test/sim" --part nodes --steps 16 --times 3 || exit 1
# Messages straight from and to device memory, which is the host's here, among operations of all kinds.
RONDO_GDR=1
RONDO_GDR_MIN=256
export RONDO_GDR RONDO_GDR_MIN
timeout 180 "$here/test/sim/programs" --nodes 2+1 --steps 48 || exit 1
# The same by collectives, too, of several pieces.
RONDO_GDR_COLL_MIN=64
RONDO_GDR_SCRATCH=64K
export RONDO_GDR_COLL_MIN RONDO_GDR_SCRATCH
for nodes in 1+1 1+1+1 2+2 2+1; do
    timeout 180 "$here/test/sim/matrix" --nodes $nodes --share 1/40 &&
        timeout 180 "$here/test/sim/programs" --nodes $nodes --steps 24 || exit 1
done
# A sum that is stored over what its rank still sends.
RONDO_PROXY_THREADS=1 timeout 180 "$here/test/sim/matrix" --nodes 1+1+1+1+1 --operation reduce_scatter --share 1/6 || exit 1
# Of the layouts one each; the others by hand, as CONTRIBUTING.md says: the matrix has been through most of them.
timeout 300 "$here/test/sim/rounds" --nodes 2+2 && timeout 180 "$here/test/sim/narrow" --nodes 2+1
