#!/bin/sh
# Every source file and document is named in Makefile.am or in a folder's local.mk: a file that is not named is neither
# built nor shipped. And no script has the name of a program: they would have one log, so make would run one of the two.
set -u
cd "${top_srcdir:-$(dirname "$0")/../..}" || exit 1
failed=0
makefiles="Makefile.am $(find lib bench tools test examples -name local.mk)"
for file in $(find lib bench tools test examples doc -name '*.[ch]' -o -name '*.sh' -o -name '*.md' -o -name '*.[fF]90' -o -name '*.pml' 2>/dev/null | sort); do
    case $file in
    test/*.c) name=${file%.c} ;; # a program made of one file is named by its program
    *) name=$file ;;
    esac
    # shellcheck disable=SC2086 # a list of files
    grep -q "[[:space:]]$name\(\.c\|\.mpi\)\{0,1\}\([[:space:]]\|\$\)" $makefiles ||
        { echo "not named in Makefile.am or a local.mk: $file"; failed=1; }
done
for script in $(find test -name '*.sh'); do
    [ ! -e "${script%.sh}.c" ] || { echo "a script and a program of one name: $script"; failed=1; }
done
exit $failed
