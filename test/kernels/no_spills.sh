#!/bin/sh
# No kernel may spill registers to memory: in a copy loop that has cost others half of their speed. None may need more
# local memory than rd_proxied, which is launched first for that reason (lib/kernels/launch.c). The compiler's report on
# each file of kernels is kept beside the object when the library is built with CUDA.
set -e
reports=$(ls "$top_builddir"/lib/kernels/*.ptxas 2>/dev/null || true)
test -n "$reports" || {
    echo "built without CUDA: there are no kernels"
    exit 77
}
awk '/Function properties for/ { name = $NF }
     /bytes spill stores/ && !/ 0 bytes spill stores, 0 bytes spill loads/ { print name ":" $0; bad = 1 }
     /bytes stack frame/ && name ~ /rd_proxied/ && name !~ /messages/ { first = $1 + 0 }
     /bytes stack frame/ && $1 + 0 > frame { frame = $1 + 0; whose = name }
     /Used [0-9]+ registers/ { kernels++; sub(/.*Used /, ""); if ($1 + 0 > most) most = $1 + 0 }
     END { print kernels " kernels, at most " most " registers and " frame " bytes of local memory, in " whose
           exit bad || kernels < 30 || first < frame }' $reports || {
    echo "registers are spilled, or a kernel needs more local memory than rd_proxied, or the reports have another form now"
    exit 1
}
