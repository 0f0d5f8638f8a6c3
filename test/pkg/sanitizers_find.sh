#!/bin/sh
# In a build with sanitizers: each of them reports the fault that was planted for it, and says nothing without one.
set -u
program=$top_builddir/test/pkg/sanitizer_planted
case ${SANITIZER:-no} in
no | "") echo "not built with --enable-sanitizer" && exit 77 ;;
esac
failed=0
"$program" none || { echo "a fault was reported where there is none"; failed=1; }
for kind in address undefined thread; do
    case $SANITIZER in
    *$kind*) ;;
    *) continue ;;
    esac
    said=$("$program" $kind 2>&1) && { echo "$kind: the planted fault did not end the program"; failed=1; }
    case $said in
    *AddressSanitizer:*heap-buffer-overflow* | *"runtime error: signed integer overflow"* | *"ThreadSanitizer: data race"*)
        echo "$kind: found" ;;
    *) echo "$kind: not found; it said: $said" && failed=1 ;;
    esac
done
exit $failed
