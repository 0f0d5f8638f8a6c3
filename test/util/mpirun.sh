#!/bin/sh
# Runs one test program under mpirun, once for each number of ranks in RONDO_TEST_RANKS; the first run that is not good
# decides. More ranks than cores is the usual case here, and so is root in a container.
set -u
if [ -z "${MPIEXEC:-}" ]; then
    MPIEXEC=$(command -v mpirun) || { echo "no mpirun"; exit 77; }
fi
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
oversubscribe=
if "$MPIEXEC" --version 2>/dev/null | grep -q 'Open MPI\|OpenRTE'; then
    oversubscribe=--oversubscribe
fi
for ranks in ${RONDO_TEST_RANKS:-2 4}; do
    echo "mpirun -n $ranks $*"
    timeout "${RONDO_TEST_SECONDS:-120}" "$MPIEXEC" $oversubscribe -n "$ranks" "$@"
    status=$?
    [ $status -eq 0 ] || exit $status
done
