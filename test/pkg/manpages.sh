#!/bin/sh
# The manual pages and doc/environment.md say what the programs say: every option and operation of --help, every
# variable of rondo-info --env and no other, the same defaults. Where mandoc is installed the pages are also clean.
set -u
source=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${top_builddir:-.}
[ -x "$build/rondo-info" ] && [ -x "$build/rondo-perf" ] && [ -x "$build/rondo-ras" ] && [ -x "$build/rondo-tune" ] || { echo "the programs are not built"; exit 77; }
man=$source/doc/man
failed=0
wrong() {
    echo "$*"
    failed=1
}

# Long options are written "Fl -name", short ones "Fl n".
for program in rondo-info rondo-perf rondo-ras rondo-tune; do
    page=$man/$program.1
    help=$("$build/$program" --help)
    for option in $(printf '%s\n' "$help" | grep -o -e '--[a-z][a-z-]*' | sort -u); do
        grep -q -e "Fl ${option#-}\( \|\$\)" "$page" || wrong "$program.1 does not say what $option does"
    done
    for option in $(printf '%s\n' "$help" | grep -o -e '\(^\| \)-[a-z] ' | sort -u); do
        grep -q -e "^.It Fl ${option#-}\( \|\$\)" "$page" || wrong "$program.1 does not say what $option does"
    done
    for option in $(sed -n 's/.*Fl -\([a-z-]*\).*/--\1/p' "$page" | sort -u); do
        case $option in
        --version | --help) ;;
        *) printf '%s\n' "$help" | grep -q -e "$option" || wrong "$program.1 has $option, which --help has not" ;;
        esac
    done
done
for operation in $("$build/rondo-perf" --help | sed -n '/^Operations/,/^Options/s/^  \([a-z_]*\) .*/\1/p'); do
    grep -q "Cm $operation\( \|\$\)" "$man/rondo-perf.1" || wrong "rondo-perf.1 lacks the operation $operation"
done

# Variables: NAME DEFAULT, "-" for none, both ways.
clean=$(env | sed -n 's/^\(RONDO_[A-Za-z0-9_]*\)=.*/-u \1/p')
env $clean "$build/rondo-info" --env | sed -n 's/^\(RONDO_[A-Z0-9_]*\) .* \([^ ][^ ]*\)  *-$/\1 \2/p' | sort >variables.$$
trap 'rm -f variables.$$ written.$$' EXIT
trap 'exit 1' HUP INT TERM
[ "$(wc -l <variables.$$)" -gt 10 ] || wrong "rondo-info --env could not be read"
sed -n 's/^| `\(RONDO_[A-Z0-9_]*\)` | `\{0,1\}\([^ `]*\)`\{0,1\} |.*/\1 \2/p' "$source/doc/environment.md" | sort >written.$$
diff variables.$$ written.$$ >&2 || wrong "doc/environment.md (>) has other variables or defaults than rondo-info --env (<)"
while read -r name default; do
    grep -q "^\.It Ev $name\( \|\$\)" "$man/rondo.7" || wrong "rondo.7 lacks $name (default $default)"
done <variables.$$
for name in $(sed -n 's/^\.It Ev \([A-Z0-9_]*\).*/\1/p' "$man/rondo.7"); do
    grep -q "^$name " variables.$$ || wrong "rondo.7 has $name, which rondo-info --env has not"
done

if command -v mandoc >/dev/null; then
    mandoc -T lint -W warning "$man"/*.[17] || wrong "mandoc finds faults"
fi
exit $failed
