# Sourced by the scripts of this folder.

# number OPTION VALUE: ends the script, unless the value is a whole number from 1 on
number() {
    case $2 in
    '' | 0* | *[!0-9]* | ??????????*)
        echo "$(basename "$0"): $1 \"$2\": a number from 1 on is wanted" >&2
        exit 2
        ;;
    esac
}
