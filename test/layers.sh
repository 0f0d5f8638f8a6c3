#!/bin/sh
# The order of lib/: each folder is a layer, and a file includes and calls what lies in its own folder or in a lower
# layer. What this test looks at, and why nothing of it is left to good will:
#
#   place      lib/ itself holds the public headers and the version map, nothing else
#   numbers    local.mk names in its first line the layer of its folder
#   includes   are written from lib/ ("plan/plan.h"), and go down
#   calls      undefined symbols of each object, as nm shows them, are defined in its own folder or below. Includes alone
#              do not show a circle, because a function may be declared anywhere
#   names      a file name stands once in lib/, but for a kernel beside its host's side, and for clients; a type or a
#              macro is defined in one header; an algorithm's name is written once
#   words      no identifier contains a word that was retired for the field's own (doc/architecture.md has the list)
#   lengths    functions of 80 lines, files of 600
#   format     .clang-format, where clang-format is installed
#
# A planted upward include, upward call and retired word must be found, or the test itself is broken.
set -u
cd "${top_srcdir:-$(dirname "$0")/..}" || exit 1
build=${top_builddir:-.}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
failed=0

# Folder, layer. Folders with one number may not use each other, but a folder and the folders in it are one room.
cat >"$scratch/layers" <<'END'
base 0
sched 1
topo 1
boot 1
cost 2
node 2
monitor 2
profile 2
transport 3
ucx 4
ofi 4
netplugin 4
plan 5
exec/host 6
kernels 6
progress 7
exec/cuda 8
rma 8
core 9
api 10
nccl 11
fortran 11
mpi 11
END

# say WHAT: fails the test for each line that comes in
say() {
    while IFS= read -r line; do
        echo "$1: $line"
        echo failed >"$scratch/failed"
    done
}

# A file of lib/ and one that it uses, both without "lib/"; prints what goes up or sideways.
upward='
function room(path,    r) {
    for (r = path; sub("/[^/]*$", "", r);)
        if (r in layer)
            return r
    return ""
}
function judge(user, used, what,    from, to) {
    from = room(user)
    to = room(used)
    if (from == "" || to == "")
        print user " uses " used what ", but one of them lies in no layer"
    else if (from != to && layer[to] >= layer[from])
        print user " (layer " layer[from] ") uses " used what " (layer " layer[to] ")"
}
FILENAME == layers { layer[$1] = $2; next }'

# lib/ without comments, which names and words in prose do not count in.
plain=$scratch/plain
find lib -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | while read -r file; do
    mkdir -p "$plain/${file%/*}"
    ${CC:-cc} -fpreprocessed -dD -E -P -x c "$file" >"$plain/$file" 2>/dev/null
done

# ---- place
find lib -maxdepth 1 -type f ! -name rondo.h ! -name rondo_device.cuh ! -name rondo_mpi.h ! -name rondo.map | say "lies in lib/ itself"

# ---- numbers
find lib -name local.mk | sort | while read -r file; do
    sed -n "1s,^# Layer \([0-9]*\):.*,${file#lib/} \1,p" "$file"
done | awk -v layers="$scratch/layers" "$upward"'
    { folder = room($1); if (layer[folder] != $2) print "lib/" $1 " says " $2 ", but " folder " is layer " layer[folder] }' \
    "$scratch/layers" - | say "layer"

# ---- includes
includes() { # of the files below $1, a copy of lib/ or lib/ itself
    find "$1" -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | sort | while read -r file; do
        sed -n "s|^ *# *include *\"\([^\"]*\)\".*|${file#"$1"/} \1|p" "$file"
    done | awk -v layers="$scratch/layers" "$upward"'
        $2 == "config.h" || $2 == "gpu.cuh" || $2 == "delays.h" { next }
        $2 ~ /\.\./ || $2 !~ /\// { print $1 " includes " $2 ", which is not written from lib/"; next }
        { judge($1, $2, "") }' "$scratch/layers" -
}
includes lib | say "include"

# ---- calls
# Objects of the core, of the kernels and of libnccl, named by their sources: lib/plan/.libs/librondo_core_la-plan.o, or
# without .libs where there are no shared libraries.
objects() {
    { find "$1/lib" -path '*/.libs/*.o' | grep . || find "$1/lib" -name '*.o'; } | grep -v '/lib/fortran/' | sort
}
symbols() {
    objects "$1" | xargs ${NM:-nm} -A 2>/dev/null | awk -v top="$1/lib/" '
        { source = substr($1, length(top) + 1) }
        { sub(/:.*/, "", source); sub(/\/\.libs\//, "/", source) }
        { sub(/\.o$/, "", source); sub(/\/lib[a-z_]*_la-/, "/", source) }
        { print source, $(NF - 1), $NF }'
}
calls() { # of the table of symbols $1
    awk -v layers="$scratch/layers" "$upward"'
        FNR == NR || FILENAME == first { }
        $2 ~ /^[TDBRC]$/ { if (!($3 in home)) home[$3] = $1 }
        $2 == "U" { user[++n] = $1; used[n] = $3 }
        END { for (i = 1; i <= n; i++) if (used[i] in home) judge(user[i], home[used[i]], ", " used[i] ",") }' \
        "$scratch/layers" "$1"
}
symbols "$build" >"$scratch/symbols"
if [ "$(grep -c '^core/.* T ' "$scratch/symbols")" -lt 20 ]; then
    echo "there are no objects of the library in $build: calls are not looked at" | say "calls"
fi
calls "$scratch/symbols" | say "call"

# ---- names
find lib -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | grep -v '^lib/nccl/\|^lib/fortran/\|^lib/kernels/\|^lib/rondo' |
    sed 's|^\(.*\)/\([^/]*\)\.[^.]*$|\2 \1|' | sort -u | awk '{ n[$1]++; where[$1] = where[$1] " " $2 }
        END { for (name in n) if (n[name] > 1) print name where[name] }' | say "name of several files"
find lib -name '*.h' -o -name '*.cuh' | xargs awk '
    /^#define [A-Za-z_][A-Za-z_0-9]*/ { name = $2; sub(/\(.*/, "", name); defined["macro " name] = defined["macro " name] " " FILENAME }
    /^typedef .*[ *][a-z_0-9]+_t;/ && !/\(/ { name = $0; sub(/;.*/, "", name); sub(/.*[* ]/, "", name); type(name) }
    /^} [a-z_0-9]+_t;/ { name = $2; sub(/;.*/, "", name); type(name) }
    function type(name) { defined["type " name] = defined["type " name] " " FILENAME }
    END { for (name in defined) if (split(defined[name], unused, " ") > 1 && !same(defined[name])) print name ":" defined[name] }
    function same(files,    list, n, i) {
        n = split(files, list, " ")
        for (i = 2; i <= n; i++)
            if (list[i] != list[1])
                return 0
        return 1
    }' | grep -v 'lib/nccl/nccl.h\|lib/kernels/ptx/' | sort | say "defined in several headers:"
names=$(sed -n 's/^ *\.name = "\([a-z0-9_]*\)".*/\1/p' lib/sched/algo/*.c | sort -u)
[ "$(echo "$names" | wc -l)" -ge 9 ] || echo "only $(echo "$names" | wc -l) cards have a name" | say "algorithms"
for name in $names; do
    places=$(cd "$plain" && grep -rl "\"$name\"" lib | grep -v '^lib/nccl/')
    [ "$(echo "$places" | wc -l)" -eq 1 ] || echo "\"$name\" stands in" $places | say "algorithm's name"
done

# ---- words
# Comments and strings are taken away first: an identifier is what the compiler sees.
retired='crews? carriers? stages? staged brief kbrief renewed lends? lent pulls? quick apart crowd askers? aside codecs?
doors? strangers? knock guests? survive culprit witness deserted deserter moments bury inner units? nquick
ask_send ask_recv chosen crowded told straight net_direct direct_peer looks lookers places? placed'
pattern=$(echo $retired | tr ' ' '|')
retired_words() { # in the files below $1
    (cd "$1" && find lib -type f | grep -v '^lib/rondo\|^lib/nccl/nccl.h' | sort | xargs awk -v pattern="(^|_)($pattern)(_|\$)" '
        { gsub(/"(\\.|[^"\\])*"/, ""); n = split($0, words, /[^A-Za-z_0-9]+/) }
        { for (i = 1; i <= n; i++) if (is_retired(words[i]) && !said[FILENAME, words[i]]++) print FILENAME ": " words[i] }
        function is_retired(word) {
            if (!(word in known))
                known[word] = tolower(word) ~ pattern && tolower(word) !~ /in_place/
            return known[word]
        }')
}
retired_words "$plain" | say "retired word"

# ---- lengths
find lib -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | grep -v '^lib/rondo\.h' | sort | xargs awk '
    FNR == 1 { inside = 0 }
    FNR == 601 { print FILENAME " has more than 600 lines" }
    /^{/ { inside = FNR }
    /^}/ { if (inside && FNR - inside > 80) print FILENAME ":" inside " is a function of " FNR - inside " lines"; inside = 0 }' |
    say "length"

# ---- format
if command -v clang-format >/dev/null 2>&1 && clang-format --version | grep -q 'version 14\.'; then
    find lib -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | sort | xargs clang-format --dry-run -Werror 2>&1 |
        sed -n 's/^\([^ :]*\):[0-9]*:.* error: .*/\1/p' | uniq | say "not in the form of .clang-format"
else
    echo "no clang-format 14 here: the form is not looked at"
fi

# ---- the test itself
mkdir -p "$scratch/planted/base"
echo '#include "core/comm.h"' >"$scratch/planted/base/planted.c"
includes "$scratch/planted" | grep -q 'base/planted.c (layer 0) uses core/comm.h (layer 9)' ||
    echo "an include from base to core was not found" | say "planted"
{ cat "$scratch/symbols"; echo "base/planted U rd_comm_make"; } >"$scratch/planted.symbols"
calls "$scratch/planted.symbols" | grep -q 'base/planted (layer 0) uses core/net_comms, rd_comm_make, (layer 9)' ||
    echo "a call from base to core was not found" | say "planted"
mkdir -p "$scratch/planted/lib"
echo 'int rd_sees_culprit(void); const char *s = "doors";' >"$scratch/planted/lib/planted.c"
[ "$(retired_words "$scratch/planted")" = "lib/planted.c: rd_sees_culprit" ] ||
    echo "a retired word was not found, or one in a string was" | say "planted"

[ ! -e "$scratch/failed" ] || failed=1
exit $failed
