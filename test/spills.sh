#!/bin/sh
# No kernel may spill registers to memory: in a copy loop that has cost others half of their speed. The compiler's report
# on each file of kernels is kept beside the object when the library is built with CUDA.
set -e
reports=$(ls "$top_builddir"/lib/kernels/*.ptxas 2>/dev/null || true)
test -n "$reports" || {
    echo "built without CUDA: there are no kernels"
    exit 77
}
awk '/Function properties for/ { name = $NF }
     /bytes spill stores/ && !/ 0 bytes spill stores, 0 bytes spill loads/ { print name ":" $0; bad = 1 }
     /Used [0-9]+ registers/ { kernels++; sub(/.*Used /, ""); if ($1 + 0 > most) most = $1 + 0 }
     END { print kernels " kernels, at most " most " registers"; exit bad || kernels < 30 }' $reports || {
    echo "registers are spilled, or the reports have another form now"
    exit 1
}
