#!/bin/sh
# NCCL's own nccl.h against what libnccl.so.2 has, by the compiler: every function is exported, those that are declared
# here have the same type, facts that are compiled into programs are the same, and every field of ncclConfig_t is known at
# its place. The header is the one that NCCL_HEADER names, or that of the package nvidia-nccl-cu13 (or -cu12) of PyPI, if
# Python finds it; without one the test is skipped. What the library beside it exports, for other headers too, is
# exported here.
set -u
source=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
info=${top_builddir:-.}/rondo-info
header=${NCCL_HEADER:-$(python3 -c 'import nvidia.nccl as n; print(list(n.__path__)[0] + "/include/nccl.h")' 2>/dev/null)}
[ -n "$header" ] && [ -r "$header" ] || { echo "no nccl.h of NCCL's: NCCL_HEADER=FILE names one"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
failed=0
plain="${CC:-cc} -std=gnu11 -w"
cc="$plain -I$dir"

# CUDA's headers are not needed for this.
mkdir "$dir/nccl"
{
    echo '#include <stddef.h>'
    echo 'typedef struct CUstream_st *cudaStream_t;'
    echo 'typedef struct CUevent_st *cudaEvent_t;'
} >"$dir/cuda_runtime.h"
: >"$dir/cuda_fp16.h"
: >"$dir/cuda_bf16.h"
: >"$dir/cuda_fp8.h"
cp "$header" "$dir/nccl/nccl.h"
if ! $cc -E -P "$dir/nccl/nccl.h" -o "$dir/theirs"; then
    echo "$header does not compile"
    exit 1
fi

# One declaration a line: from there to the semicolon outside of braces.
declarations() {
    tr '\n' ' ' <"$1" | tr ';' '\n' | sed -n 's/.*[ }"]\(\(ncclResult_t\|void\|int\|const char *\*\|ncclTeam_t\) *p\{0,1\}nccl[A-Za-z0-9]* *(.*)\).*/\1;/p' |
        grep -v '(\*'
}
names() { sed -n 's/.*[ *]pnccl\([A-Z][A-Za-z0-9]*\) *(.*/\1/p' | sort -u; }

declarations "$dir/theirs" >"$dir/theirs.list"
count=$(names <"$dir/theirs.list" | wc -l)
[ "$count" -gt 35 ] || { echo "only $count functions were found in $header"; failed=1; }
"$info" --nccl | sed -n 's/^    nccl\([A-Za-z0-9]*\) .*/\1/p' | sort >"$dir/listed"
missing=$(names <"$dir/theirs.list" | comm -23 - "$dir/listed")
[ -z "$missing" ] || { echo "NCCL has, and rondo does not:" $missing; failed=1; }

library=$(dirname "$header")/../lib/libnccl.so.2
if [ -r "$library" ]; then
    ${NM:-nm} -D --defined-only "$library" | sed -n 's/.* [TW] pnccl\([A-Za-z0-9]*\)\(@.*\)*$/\1/p' | sort -u >"$dir/exported"
    [ "$(wc -l <"$dir/exported")" -ge "$count" ] || { echo "too few functions were found in $library"; failed=1; }
    missing=$(comm -23 "$dir/exported" "$dir/listed")
    [ -z "$missing" ] || { echo "NCCL exports, and rondo does not:" $missing; failed=1; }
fi

# Types: declared a second time, by what stands here. Functions that fail without reading their arguments are not.
$plain -E -P -I"$source/lib" "$source/lib/nccl/later.h" -o "$dir/ours" || failed=1
echo '#include "nccl/nccl.h"' >"$dir/types.c"
declarations "$dir/ours" | grep -v '(void);$' >"$dir/ours.list"
compared=0
while IFS= read -r line; do
    name=$(echo "$line" | sed -n 's/.*[ *]p\{0,1\}nccl\([A-Z][A-Za-z0-9]*\) *(.*/\1/p')
    grep -q "[ *]pnccl$name *(" "$dir/theirs.list" || continue
    echo "$line" >>"$dir/types.c"
    compared=$((compared + 1))
done <"$dir/ours.list"
$cc -c "$dir/types.c" -o "$dir/types.o" || failed=1
[ "$compared" -gt 60 ] || { echo "only $compared types were compared"; failed=1; }

# Facts: those of layout.c that do not depend on the version.
sed '/sizeof(nccl\(Coll\)*Config_t)\|NCCL_VERSION/d; /^int main/,$d; s/later\.h/nccl.h/' "$source/test/nccl/layout.c" |
    while IFS= read -r line; do # what an older header lacks is not compared
        for word in $(echo "$line" | sed -n 'h; s/^SAME.*[( ]\(\(nccl\|NCCL_\)[A-Za-z0-9_]*\).*/\1/p; g; s/^SAME(offsetof(.*, \([A-Za-z]*\)).*/\1/p'); do
            grep -q "\b$word\b" "$dir/nccl/nccl.h" || line=
        done
        printf '%s\n' "$line"
    done >"$dir/facts.c"
$cc -c "$dir/facts.c" -o "$dir/facts.o" || failed=1
[ "$(grep -c ^SAME "$dir/facts.c")" -gt 50 ] || { echo "too few facts were compared"; failed=1; }

# Fields of the config: each name stands in nccl.h or config.c, and those after this header's are where config.c looks for them.
sed -n '/struct ncclConfig_v/,/ncclConfig_t/p' "$dir/nccl/nccl.h" |
    sed -n 's/^ *\(int\|const char *\*\) *\([A-Za-z0-9]*\);.*/\2/p' >"$dir/fields"
[ "$(wc -l <"$dir/fields")" -ge 14 ] || { echo "too few fields of ncclConfig_t were found"; failed=1; }
for field in $(cat "$dir/fields"); do
    grep -q "\b$field\b" "$source/lib/nccl/config.c" "$source/lib/nccl/nccl.h" || { echo "config->$field is not known"; failed=1; }
done
{
    echo '#include <stddef.h>'
    echo '#include "nccl/nccl.h"'
    sed -n 's/^    {"\([A-Za-z0-9]*\)", AFTER(\([0-9]*\)).*/\1 \2/p' "$source/lib/nccl/config.c" | while read -r field n; do
        grep -qx "$field" "$dir/fields" &&
            echo "_Static_assert(offsetof(ncclConfig_t, $field) == offsetof(ncclConfig_t, nvlinkCentricSched) + $n * sizeof(int), \"$field\");"
    done
} >"$dir/offsets.c"
$cc -c "$dir/offsets.c" -o "$dir/offsets.o" || failed=1

version=$(sed -n 's/^#define NCCL_VERSION_CODE \([0-9]*\).*/\1/p' "$dir/nccl/nccl.h")
echo "nccl.h of version $version: $count functions, $compared declarations, $(grep -c ^SAME "$dir/facts.c") facts," \
    "$(wc -l <"$dir/fields") fields, $(grep -c Static_assert "$dir/offsets.c") of them newer"
exit $failed
