#!/bin/sh
# libnccl.so.2 exports what rondo-info --nccl lists, each function as a strong pncclX and a weak ncclX at one address, and
# nothing else; what nccl.h declares is among it, and doc/nccl.md names the same. The page's tables of functions and of
# variables are those of rondo-info --nccl, word by word.
set -u
library=${top_builddir:-.}/.libs/libnccl.so.2
header=${top_srcdir:-$(dirname "$0")/../..}/lib/nccl/nccl.h
[ -e "$library" ] || { echo "no libnccl.so.2 was built"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
failed=0

"$top_builddir/rondo-info" --nccl | sed -n 's/^    nccl\([A-Za-z0-9]*\) .*/\1/p' | sort >"$dir/listed"
[ "$(wc -l <"$dir/listed")" -ge 82 ] || { echo "rondo-info --nccl lists too little"; failed=1; }
[ -z "$(uniq -d "$dir/listed")" ] || { echo "listed twice: $(uniq -d "$dir/listed")"; failed=1; }

${NM:-nm} -D --defined-only "$library" | awk '$2 != "A"' >"$dir/all"
sed -n 's/^\([0-9a-f]*\) T pnccl\([A-Za-z0-9]*\)$/\2 \1/p' "$dir/all" | sort >"$dir/strong"
sed -n 's/^\([0-9a-f]*\) [VW] nccl\([A-Za-z0-9]*\)$/\2 \1/p' "$dir/all" | sort >"$dir/weak"
cmp "$dir/strong" "$dir/weak" || { diff "$dir/strong" "$dir/weak"; failed=1; }
cut -d' ' -f1 "$dir/strong" | diff - "$dir/listed" || { echo "exported and listed differ"; failed=1; }
others=$(grep -v ' [TVW] p\{0,1\}nccl' "$dir/all")
[ -z "$others" ] || { echo "exported besides: $others"; failed=1; }

# name, version, how it is served, and what is different; the page's links are no words
"$top_builddir/rondo-info" --nccl | awk '/^[a-z]/ { how = /^not/ ? "not supported" : /difference/ ? "with a difference" : "served" }
    $1 ~ /^nccl/ && $2 ~ /\./ { name = $1; since = $2; $1 = $2 = ""; print name, since, how, $0 }' | tr -s ' ' |
    sed 's/ $//' | sort >"$dir/functions"
sed -n 's/^| `\(nccl[A-Za-z0-9]*\)` |\(.*\) |$/\1\2/p' "${header%/lib/nccl/nccl.h}/doc/nccl.md" |
    sed 's/ (\[[^]]*\]([^)]*))//g' | tr -d '`|' | tr -s ' ' | sed 's/ $//' | sort | diff - "$dir/functions" ||
    { echo "doc/nccl.md (<) and rondo-info --nccl (>) say different things of a function"; failed=1; }

# A program that finds a function which the version that ncclGetVersion names does not have will use what it offers.
# All but the ones listed here, which give nothing away, fail as if they were not there.
newer=$("$top_builddir/rondo-info" --nccl | awk '/^[a-z]/ { refused = /^not supported/ } $1 ~ /^nccl/ { split($2, v, "."); if (v[2] > 28 && !refused && $1 !~ /^nccl(Param.*|[A-Za-z]*Config)$/) print $1 }')
[ "$(echo $newer)" = "ncclCommGetUniqueId ncclCommGrow ncclCommResume ncclCommMemStats ncclWinGetUserPtr ncclCommSuspend ncclPutSignal ncclSignal ncclWaitSignal" ] || { echo "newer than the version, and not refused: $newer"; failed=1; }

"$top_builddir/rondo-info" --nccl | sed -n 's/^ *\(NCCL_.*\)/\1/p' | tr -s ' ' >"$dir/variables"
[ "$(wc -l <"$dir/variables")" -ge 20 ] || { echo "rondo-info --nccl lists too few variables"; failed=1; }
sed -n 's/^| `\(NCCL_[A-Z0-9_]*\)` |\(.*\) |$/\1\2/p' "${header%/lib/nccl/nccl.h}/doc/nccl.md" | tr -d '`|' | tr -s ' ' |
    diff - "$dir/variables" || { echo "doc/nccl.md (<) and rondo-info --nccl (>) say different things of a variable"; failed=1; }

for name in $(sed -n 's/^[a-z].*[ *]p\{0,1\}nccl\([A-Z][A-Za-z0-9]*\)(.*/\1/p' "$header" | sort -u); do
    grep -qx "$name" "$dir/listed" || { echo "declared in nccl.h, but not exported: nccl$name"; failed=1; }
done
declared=$(sed -n 's/^[a-z].*[ *]\(p\{0,1\}nccl[A-Z][A-Za-z0-9]*\)(.*/\1/p' "$header" | sort -u | wc -l)
[ $((declared % 2)) = 0 ] || { echo "nccl.h declares a function without its twin"; failed=1; }

soname=$(readelf -d "$library" 2>/dev/null | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
[ "$soname" = libnccl.so.2 ] || { echo "the soname is $soname"; failed=1; }
exit $failed
