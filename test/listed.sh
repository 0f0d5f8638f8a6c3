#!/bin/sh
# Every source file and document is named in Makefile.am: a file that is not named is neither built nor shipped.
set -u
cd "${top_srcdir:-$(dirname "$0")/..}" || exit 1
failed=0
for file in $(find lib bench tools test examples doc -name '*.[ch]' -o -name '*.sh' -o -name '*.md' -o -name '*.[fF]90' -o -name '*.pml' 2>/dev/null | sort); do
    case $file in
    test/*.c) name=${file%.c} ;; # a program made of one file is named by its program
    *) name=$file ;;
    esac
    grep -q "[[:space:]]$name\(\.c\|\.mpi\)\{0,1\}\([[:space:]]\|\$\)" Makefile.am ||
        { echo "not named in Makefile.am: $file"; failed=1; }
done
exit $failed
