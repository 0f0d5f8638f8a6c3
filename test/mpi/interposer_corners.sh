#!/bin/sh
# The corners that make interposers wrong (doc/notebook/host.md numbers them), with Open MPI and MPICH.
set -u
. "${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}/test/mpi/interposer/common.sh"
[ -n "$(mpis)" ] || { echo "neither mpicc.openmpi nor mpicc.mpich is here"; exit 77; }
# For choose_comma, once: by themselves its ranks would each make one (test/util/comma.h), which takes them seconds.
locales=$dir/locales
mkdir "$locales"
localedef -i de_DE -f UTF-8 "$locales/de_DE.UTF-8" >/dev/null 2>&1
[ -e "$locales/de_DE.UTF-8/LC_NUMERIC" ] || locales= # an installed one, then, or none
for mpi in $(mpis); do
    for_mpi "$mpi" || continue
    compile corners
    compile communicators
    compile errors
    for ranks in ${RONDO_TEST_RANKS:-2 4}; do
        good $ranks "$dir/corners.$mpi" plain progress in_flight barrier handles bottom names ties huge nothing large equal_bits wildcard \
            mixed
        good $ranks "$dir/communicators.$mpi" attributes freeing members made others finalize
        good $ranks "$dir/errors.$mpi" begun errors # begun before others: the first communicators alone are served at once
        good $ranks --table=off "$dir/errors.$mpi" errors errors_nonblocking handler_calls
    done
    good 3 "$dir/corners.$mpi" matrix progress
    good 3 --report "$dir/corners.$mpi" characters
    grep -q '^  allreduce  *20  *20 ' "$dir/out" || { cat "$dir/out"; fail "not all reductions of MPI_CHAR are served"; }
    MPIR_CVAR_COLL_ALIAS_CHECK=0 good 3 "$dir/corners.$mpi" equal # MPICH does not look at it then; Open MPI takes these
    good 3 "$dir/communicators.$mpi" lifetimes
    [ $family = mpich ] || good 3 "$dir/communicators.$mpi" freeing_alone # MPICH 4.0.2 crashes there by itself
    good 3 --report "$dir/communicators.$mpi" duplicates
    grep -q '^  all  *14  *14  *100.0%' "$dir/out" || { cat "$dir/out"; fail "not all calls on duplicates were served"; }
    good 4 --reproducible --report "$dir/corners.$mpi" in_order
    grep -q '^  iscan  *2  *2 ' "$dir/out" || { cat "$dir/out"; fail "a short iscan or a long one is not served"; }
    good 3 --reproducible --compare=2 "$dir/corners.$mpi" in_order
    good 4 --reproducible "$dir/corners.$mpi" in_order_without
    good 4 --reproducible --compare=3 --serve=-allreduce,reduce_scatter_block=0-64K "$dir/corners.$mpi" in_order_but
    compile ordered # also what the MPI serves behind its call
    for ranks in 3 4; do
        good $ranks --reproducible --report "$dir/ordered.$mpi" operators nonblocking persistent
        grep -q '^  ireduce_scatter_block  *9  *2 ' "$dir/out" || { cat "$dir/out"; fail "by operators of the user's"; }
    done
    good 2 --reproducible "$dir/ordered.$mpi" many
    good 3 --reproducible "$dir/ordered.$mpi" threads
    RONDO_TIMEOUT_MS=300 good 2 --reproducible "$dir/ordered.$mpi" left
    grep -q 'MPI_Finalize was called before 1 nonblocking' "$dir/out" || { cat "$dir/out"; fail "what was left is not said"; }
    RONDO_TIMEOUT_MS=300 good 2 --table=off "$dir/ordered.$mpi" left_served
    good 3 "$dir/communicators.$mpi" kept
    good 2 --report "$dir/communicators.$mpi" spawned
    grep -q 'cannot spawn' "$dir/out" || grep -q 'with ranks that were spawned' "$dir/out" ||
        { cat "$dir/out"; fail "why those with spawned ranks are handed on"; }
    good 3 "$dir/corners.$mpi" environment
    good 3 --report "$dir/corners.$mpi" environment_off
    grep -q 'the MPI served 12 switched off' "$dir/out" || { cat "$dir/out"; fail "one rank is off, but the world is served"; }
    good 3 --reproducible "$dir/corners.$mpi" not_made
    said=$(grep -c "could not make rondo's communicator" "$dir/out")
    [ "$said" = 1 ] || { cat "$dir/out"; fail "$said ranks said that there is no communicator of rondo's"; }
    good 2 --report "$dir/corners.$mpi" forks
    [ "$(grep -c '^rondo: collective calls' "$dir/out")" = 1 ] || { cat "$dir/out"; fail "a forked process reports, too"; }
    compile first -rdynamic -ldl
    good 3 "$dir/first.$mpi" idup
    good 3 --report "$dir/first.$mpi" idup_blocking
    grep -q '^  allreduce  *[0-9]*  *[1-9]' "$dir/out" || { cat "$dir/out"; fail "no allreduce beside MPI_Comm_idup is served"; }
    good 3 --log "$dir/first.$mpi" idup_measured
    [ $family = openmpi ] && wanted=": 0.00 us" || wanted=":"
    grep -q "measured ibcast of 4 bytes for 3 ranks$wanted" "$dir/out" ||
        { cat "$dir/out"; fail "a nonblocking call is measured while a communicator is duplicated"; }
    compile nonblocking
    compile persistent
    for ranks in ${RONDO_TEST_RANKS:-2 4}; do
        # Open MPI's own nonblocking ones fail when the communicator is freed meanwhile.
        good $ranks --table=off --report "$dir/nonblocking.$mpi" elsewhere collectives orders deep freed dup_meanwhile \
            statuses mixed barrier does_not_wait others bottom large finalize unfinished never_freed
        grep -q '^  iallreduce  *[0-9]*  *[1-9]' "$dir/out" || { cat "$dir/out"; fail "no iallreduce was served"; }
        good $ranks "$dir/persistent.$mpi" errors
        good $ranks --report "$dir/persistent.$mpi" again
        grep -q '^  reduce_init  *60  *60 ' "$dir/out" || { cat "$dir/out"; fail "not all reduce_init were served"; }
        good $ranks --table=off --report "$dir/persistent.$mpi" persistent
        for name in allreduce bcast alltoallv barrier scan gather; do
            grep -q "^  ${name}_init  *[0-9]*  *[1-9]" "$dir/out" || { cat "$dir/out"; fail "no ${name}_init was served"; }
        done
    done
    "$mpicc" -w -shared -fPIC "$here/played_recv.c" -o "$dir/recv.so" || fail "played_recv.c"
    LD_PRELOAD=$dir/recv.so good 2 --table=off --report "$dir/persistent.$mpi" refused
    grep -q '^  allreduce_init  *[0-9]*  *1 ' "$dir/out" ||
        { cat "$dir/out"; fail "rondo's communicators are gone with requests that could not be made"; }
    good 3 --report "$dir/nonblocking.$mpi" early
    grep -q '^  iallgather  *40  *20 ' "$dir/out" || { cat "$dir/out"; fail "not 20 of 40 iallgather were served"; }
    # Threads, each with a communicator: the blocking calls are served, but for the first seven, the others never.
    compile threads -ldl
    for ranks in 2 3; do
        good $ranks "$dir/threads.$mpi" threads threads_types
        good $ranks --report "$dir/threads.$mpi" threads_choose
        for name in bcast allgather gather gatherv allreduce barrier; do
            grep -q "^  $name  *[0-9]*  *[0-9]*  *\(9[0-9]\|100\)\." "$dir/out" ||
                { cat "$dir/out"; fail "$name of threads is not served"; }
        done
    done
    good 3 "$dir/threads.$mpi" threads_environment
    good 3 "$dir/threads.$mpi" threads_not_made
    good 2 --report "$dir/threads.$mpi" threads_nonblocking
    grep -q 'nonblocking, with MPI_THREAD_MULTIPLE' "$dir/out" || { cat "$dir/out"; fail "no reason, with threads"; }
    # An error on one rank alone does not let the ranks count differently.
    compile alone
    good 3 "$dir/alone.$mpi" blocking nonblocking persistent
    good 2 --compare=5 "$dir/alone.$mpi" blocking nonblocking persistent
    grep -q '^  allreduce .*% .* [0-9.]* *[0-9.]* *[0-9.]*$' "$dir/out" && ! grep -q '^  .* 0\.00$' "$dir/out" ||
        { cat "$dir/out"; fail "the MPI has a time of nothing"; }
    "$mpicc" -w -shared -fPIC "$here/played_success.c" -o "$dir/success.so" || fail "played_success.c"
    for RONDO_TEST_PLAYED in "" "$dir/success.so"; do
        export RONDO_TEST_PLAYED # the program sees that it is in force
        LD_PRELOAD=$RONDO_TEST_PLAYED good 3 "$dir/alone.$mpi" handlers
        LD_PRELOAD=$RONDO_TEST_PLAYED good 2 --compare=5 "$dir/alone.$mpi" handlers
    done
    unset RONDO_TEST_PLAYED
    # A communicator is revoked: by Open MPI 5 itself, and for MPICH it is played.
    if [ $family = openmpi ] && [ "$(macro OMPI_MAJOR_VERSION)" -ge 5 ]; then
        compile revoke
        before=$oversubscribe
        oversubscribe="$oversubscribe --with-ft ulfm"
        good 3 "$dir/revoke.$mpi" blocking nonblocking
        run 3 "$dir/revoke.$mpi" dies # rondo says that one has died
        grep -q '^good$' "$dir/said" || { cat "$dir/out"; fail "a rank dies, and the others go on"; }
        oversubscribe=$before
    elif [ $family = mpich ] && "$mpicc" -w -shared -fPIC "$here/played_revoke.c" -o "$dir/revoke.so" 2>"$dir/log"; then
        compile revoke
        RONDO_TEST_PLAYED=$dir/revoked MPIR_CVAR_ENABLE_FT=1 LD_PRELOAD=$dir/revoke.so \
            good 3 "$dir/revoke.$mpi" blocking
    elif [ $family = mpich ]; then
        cat "$dir/log"
        fail "played_revoke.c"
    fi
    # Device pointers; with the MPI, too, which knows no devices; with threads it has all that does not block.
    compile device -ldl
    gcc -w -shared -fPIC -Wl,-soname,libcuda.so.1 "$here/played_cuda.c" -o "$dir/libcuda.so.1" || fail "played_cuda.c"
    for serve in all off; do
        good 3 --serve=$serve "$dir/device.$mpi" "$dir/libcuda.so.1"
    done
    good 3 --reproducible "$dir/device.$mpi" "$dir/libcuda.so.1" threads
    # Who is quicker is measured for what moves data; with a table for all, and only once.
    good 2 --log "$dir/corners.$mpi" choose
    for name in bcast gatherv scatterv allgather alltoall; do
        grep -q "measured $name of [0-9]* bytes for 2 ranks" "$dir/out" || { cat "$dir/out"; fail "$name is not measured"; }
    done
    grep -q 'measured allreduce' "$dir/out" && fail "a sum is measured without a table"
    good 2 --log --table=off --report "$dir/corners.$mpi" choose
    grep -q 'rondo: measured' "$dir/out" && fail "something is measured in spite of --table=off"
    grep -q '^  gatherv .* 100.0%' "$dir/out" || { cat "$dir/out"; fail "--table=off, but gatherv is handed on"; }
    table=$dir/table.$mpi
    good 2 --table="$table" "$dir/corners.$mpi" choose
    for name in bcast gatherv scatterv alltoall allreduce; do
        [ "$(grep -c " 2 $name [0-9]* [0-9.]* [0-9.]*\$" "$table")" = 1 ] || fail "the table has no $name"
    done
    cp "$table" "$table.1"
    good 2 --table="$table" --log "$dir/corners.$mpi" choose
    cmp -s "$table" "$table.1" && ! grep -q 'rondo: measured' "$dir/out" || fail "it is measured again"
    # Numbers in it have points, also where a program's have a comma.
    LOCPATH=$locales good 2 --table="$table" --log "$dir/corners.$mpi" choose_comma
    cmp -s "$table" "$table.1" && ! grep -q 'rondo: measured' "$dir/out" || fail "it is measured again with a comma"
    LOCPATH=$locales good 2 --table="$table.comma" "$dir/corners.$mpi" choose_comma
    for name in bcast gatherv scatterv alltoall allreduce; do
        [ "$(grep -c " 2 $name [0-9]* [0-9.]* [0-9.]*\$" "$table.comma")" = 1 ] || fail "the table has no $name, or commas"
    done
    # The MPI serves what a table says that was made here.
    read -r name rest <"$table"
    name_of_mpi=$name
    printf "$name %s\n" "2 bcast 8 10 5" "2 bcast 8192 10 5" "2 allreduce 8 10 20" "2 allreduce 2048 10 20" \
        "2 allreduce 8192 10 20" "2 allreduce 2048 10 5" "2 allreduce 131072 10 20" "4 allreduce 8 10 5" >"$table"
    cp "$table" "$table.1"
    good 2 --table="$table" --report "$dir/corners.$mpi" table
    cmp -s "$table" "$table.1" || fail "the table was measured again"
    served=$(awk '$1 == "allreduce" { a = $3 } $1 == "bcast" { b = $3 } END { print a, b }' "$dir/out")
    [ "$served" = "15 5" ] || { cat "$dir/out"; fail "served of 20 and 20: $served"; }
    grep -q 'the MPI served 20 for which the MPI was measured to be quicker' "$dir/out" || { cat "$dir/out"; fail "why"; }
    good 2 --table=/nowhere/table "$dir/corners.$mpi" choose
    [ "$(grep -c '/nowhere/table cannot be written' "$dir/out")" = 1 ] || fail "a table that cannot be written"
    truncate -s 512M "$table.full" # as long as a file may be
    RONDO_MPI_TABLE=$table.full good 2 sh -c 'ulimit -f 1048576; exec "$0" "$@"' "$dir/corners.$mpi" choose
    [ "$(grep -c 'full cannot be written: File too large' "$dir/out")" = 1 ] || { cat "$dir/out"; fail "a table that is full"; }
    # Nonblocking ones are measured at a blocking call; a table says it before.
    for ranks in 2 3; do
        good $ranks --log "$dir/nonblocking.$mpi" choose
        for name in ibcast ibarrier; do
            grep -q "measured $name of [0-9]* bytes for $ranks ranks" "$dir/out" ||
                { cat "$dir/out"; fail "$name is not measured"; }
        done
        grep -q 'measured iallreduce' "$dir/out" && fail "a sum of a nonblocking call is measured without a table"
    done
    printf "$name_of_mpi %s\n" "2 ibcast 4 10 5" "2 ibarrier 0 5 10" "2 iallreduce 4 10 5" >"$table"
    good 2 --table="$table" --report --log "$dir/nonblocking.$mpi" choose
    grep -q 'measured i' "$dir/out" && { cat "$dir/out"; fail "nonblocking: measured in spite of a table"; }
    served=$(awk '$1 == "ibcast" || $1 == "iallreduce" { print $1, $2, $3 }' "$dir/out" | tr '\n' ' ')
    [ "$served" = "ibcast 400 0 iallreduce 400 0 " ] || { cat "$dir/out"; fail "nonblocking by a table: $served"; }
    grep -q '^  ibarrier  *[0-9]*  *4[0-9][0-9] ' "$dir/out" || { cat "$dir/out"; fail "ibarrier by a table"; }
    # By a table in which bytes decide, while ranks say the same bytes by types of different sizes. Open MPI's tuned
    # collectives choose by what one rank sees, so its basic ones are asked.
    OMPI_MCA_coll=basic,libnbc,self,inter
    export OMPI_MCA_coll
    compile types
    for ranks in 2 3; do
        for kind in bcast allgather alltoall ibcast iallgather ialltoall; do
            printf "$name_of_mpi $ranks $kind %s\n" "8 10 5" "16 5 10" "64 10 5" "128 5 10" "512 10 5" "1024 5 10"
        done >"$table"
        good $ranks --table="$table" --report "$dir/types.$mpi" types
        for kind in bcast allgather alltoall ibcast iallgather ialltoall; do
            grep -q "^  $kind  *48  *24 " "$dir/out" || { cat "$dir/out"; fail "$kind, by types of different sizes"; }
        done
    done
    unset OMPI_MCA_coll
    # Persistent ones are measured when they are made, where the MPI's own are right (table.c); or a table says it.
    good 2 --log "$dir/persistent.$mpi" choose
    [ $family = openmpi ] && wanted="2 1 0" || wanted="0 0 0"
    measured=$(for name in bcast alltoallv allreduce; do grep -c "measured ${name}_init" "$dir/out"; done | tr '\n' ' ')
    [ "$measured" = "$wanted " ] || { cat "$dir/out"; fail "persistent: measured $measured"; }
    printf "$name_of_mpi %s\n" "2 bcast_init 8 10 5" "2 bcast_init 65536 5 10" "2 alltoallv_init 1 5 10" \
        "2 allreduce_init 4 5 10" >"$table"
    good 2 --table="$table" --report "$dir/persistent.$mpi" choose
    [ $family = openmpi ] && wanted=6 || wanted=12
    grep -q "^  bcast_init  *[0-9]*  *$wanted " "$dir/out" || { cat "$dir/out"; fail "bcast_init by a table"; }
    # However it ends, it ends, and nothing of it stays.
    for way in leave leave_one abort die; do
        began=$(date +%s)
        run 3 "$dir/corners.$mpi" $way
        code=$?
        [ $(($(date +%s) - began)) -le 60 ] && [ $code -ne 124 ] || { cat "$dir/out"; fail "$way does not end"; }
        [ $way = leave ] || [ $way = leave_one ] || [ $code -ne 0 ] || fail "$way is no failure"
        for wait in 1 2 3 4 5 6 7 8 9 10; do # for what the launcher kills
            pgrep -f "^$dir/corners.$mpi" >"$dir/left" || break
            sleep 0.5
        done
        [ ! -s "$dir/left" ] || fail "$way leaves the processes $(tr '\n' ' ' <"$dir/left")"
    done
    for way in leave die; do
        run 3 "$dir/nonblocking.$mpi" $way
        [ $? -ne 124 ] || { cat "$dir/out"; fail "$way with an operation in flight does not end"; }
    done
done
exit $failed
