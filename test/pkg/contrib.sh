#!/bin/sh
# What contrib/ holds is at least well formed: the module file, sourced as Environment Modules would, sets each path to
# a folder of the prefix; Spack's recipe compiles, and asks for nothing that configure does not know.
set -u
source=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${top_builddir:-.}
tried=0
if command -v tclsh >/dev/null; then
    tried=1
    said=$(tclsh <<EOF
proc module-whatis {text} { puts "whatis \$text" }
proc conflict {name} { puts "conflict \$name" }
proc prepend-path {name value} { puts "\$name \$value" }
source $build/contrib/rondo.modulefile
ModulesHelp
EOF
    ) || { echo "the module file does not run"; exit 1; }
    prefix=$(sed -n 's/^prefix = //p' "$build/Makefile")
    for name in PATH LD_LIBRARY_PATH LIBRARY_PATH CPATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH MANPATH; do
        printf '%s\n' "$said" | grep -q "^$name $prefix" || { echo "$name is not set to a folder of $prefix: $said"; exit 1; }
    done
fi
if command -v python3 >/dev/null; then
    tried=1
    recipe=$source/contrib/spack/package.py
    python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$recipe" || exit 1
    for option in $(sed -n 's/.*"\(--with-[a-z]*\)=.*/\1/p; s/.*for name in (\(.*\)):/\1/p' "$recipe" | tr -d '",' |
        sed 's/^--with-//'); do
        "$source/configure" --help | grep -q -e "--with-${option#--with-}" || { echo "configure has no --with-$option"; exit 1; }
    done
fi
[ $tried = 1 ] || exit 77
