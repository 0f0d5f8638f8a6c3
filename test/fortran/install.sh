#!/bin/sh
# What is installed serves a program outside the tree: module rondo without an MPI in sight, with an error that stops
# the program where there is no ierror; then the examples by each MPI's wrapper from the installed source of module
# rondo_mpi, one librondo for all, and a program whose default integers are wider than that MPI's; then the module that
# was compiled for configure's own MPI.
set -u
source=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${top_builddir:-.}
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
fail() {
    cat "$dir/log" 2>/dev/null
    echo "$*"
    exit 1
}
make -C "$build" install DESTDIR="$dir/root" >"$dir/log" 2>&1 || fail "make install failed"
pc=$(find "$dir/root" -name rondo-fortran.pc)
[ -n "$pc" ] || fail "no rondo-fortran.pc was installed"
LD_LIBRARY_PATH=$(dirname "$(find "$dir/root" -name librondo.so)")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
PKG_CONFIG_PATH=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$dir/root
export LD_LIBRARY_PATH PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
module=$dir/root$(pkg-config --variable=mpi_source rondo-fortran)
[ -e "$module" ] || module=$(pkg-config --variable=mpi_source rondo-fortran) # newer ones put the root before it
flags=$(pkg-config --cflags --libs rondo-fortran)
cd "$dir" || exit 1

cat >alone.f90 <<'END'
program alone
  use rondo
  implicit none
  type(rondo_unique_id) :: id
  type(rondo_comm) :: comm
  real :: x(4), y(4)

  call rondo_unique_id_create(id)
  call rondo_comm_create(comm, 1, id, 0)
  x = 2
  call rondo_allreduce(x, y, size(x), RONDO_FLOAT32, RONDO_SUM, comm)
  print '(4f4.1)', y
  call rondo_allreduce(x(1:4:2), y, 2, RONDO_FLOAT32, RONDO_SUM, comm)
  print '(a)', 'and on it went'
end program
END
${FC:-gfortran} alone.f90 $flags -o alone >log 2>&1 || fail "a program without an MPI does not compile"
RONDO_DEBUG=none timeout 60 ./alone >out 2>err && fail "an error without ierror did not stop the program"
cat out err
grep -q '2.0 2.0 2.0 2.0' out || fail "the first allreduce went wrong"
grep -q 'and on it went' out && fail "an error without ierror was passed over"
grep -q 'rondo_allreduce: send is not contiguous.*invalid argument' err || fail "the message is another one"

cat >wide.f90 <<'END'
program wide
  use, intrinsic :: iso_c_binding, only: c_int
  use mpi, only: MPI_COMM_WORLD
  use rondo_mpi
  implicit none
  external :: MPI_Init, MPI_Finalize
  integer(kind(MPI_COMM_WORLD)) :: failed
  type(rondo_comm) :: comm
  integer(c_int) :: rank, n
  integer :: x(3), y(3)

  call MPI_Init(failed)
  call rondo_comm_create_mpi(comm, MPI_COMM_WORLD)
  call rondo_comm_rank(comm, rank)
  call rondo_comm_size(comm, n)
  x = rank + 1
  call rondo_allreduce(x, y, size(x), RONDO_INT64, RONDO_SUM, comm)
  if (any(y /= n * (n + 1) / 2)) error stop 'the sum of wide integers is wrong'
  call rondo_comm_destroy(comm)
  call MPI_Finalize(failed)
end program
END

tried=
for mpi in ${MPIFC:-} mpif90.openmpi mpif90.mpich; do
    run=$(command -v "$mpi" | sed 's,mpif90,mpirun,; s,mpifort,mpirun,')
    [ -x "$run" ] || continue
    real=$(readlink -f "$run")
    case $tried in *" $real "*) continue ;; esac # the same under another name
    tried="$tried $real "
    for example in cg halo transpose; do
        # -fallow-argument-mismatch and the like are the wrapper's own affair.
        "$mpi" "$module" "$source/examples/$example.f90" $flags -o "$example" >log 2>&1 ||
            fail "$mpi does not compile $example.f90"
    done
    rm -f rondo_mpi.mod
    if echo end >end.f90 && "$mpi" -fdefault-integer-8 -c end.f90 >log 2>&1; then # other compilers have another word
        "$mpi" -fdefault-integer-8 "$module" wide.f90 $flags -o wide >log 2>&1 || fail "$mpi does not compile wide.f90"
        rm -f rondo_mpi.mod
        MPIEXEC=$run RONDO_TEST_RANKS=2 sh "$source/test/util/mpirun.sh" ./wide || fail "wide fails under $run"
    fi
    MPIEXEC=$run RONDO_TEST_RANKS=2 sh "$source/test/util/mpirun.sh" ./cg || fail "cg fails under $run"
    MPIEXEC=$run RONDO_TEST_RANKS=3 sh "$source/test/util/mpirun.sh" ./halo || fail "halo fails under $run"
    MPIEXEC=$run RONDO_TEST_RANKS=3 sh "$source/test/util/mpirun.sh" ./transpose || fail "transpose fails under $run"
done
[ -z "${MPI_FCLIBS:-}" ] || [ -n "$tried" ] || fail "no MPI was tried"
if [ -n "${MPI_FCLIBS:-}" ]; then
    "$MPIFC" "$source/examples/cg.f90" $(pkg-config --cflags --libs rondo-fortran-mpi) -o cg >log 2>&1 ||
        fail "rondo-fortran-mpi does not compile cg.f90"
    RONDO_TEST_RANKS=2 sh "$source/test/util/mpirun.sh" ./cg || fail "cg fails with the installed module"
fi

# In cmake/build: the program without an MPI, and cg with module rondo_mpi from the archive and from its source.
by_cmake() {
    mkdir -p cmake/build && {
        echo 'cmake_minimum_required(VERSION 3.10)'
        echo 'project(programs Fortran)'
        echo 'find_package(rondo REQUIRED CONFIG COMPONENTS Fortran)'
        echo 'add_executable(alone ../alone.f90)'
        echo 'target_link_libraries(alone rondo::fortran)'
        [ -z "${MPI_FCLIBS:-}" ] || cat <<END
find_package(MPI REQUIRED COMPONENTS Fortran)
add_executable(ready $source/examples/cg.f90)
target_link_libraries(ready rondo::fortran_mpi MPI::MPI_Fortran)
add_executable(other $source/examples/cg.f90 \${rondo_FORTRAN_MPI_SOURCE})
set_target_properties(other PROPERTIES Fortran_MODULE_DIRECTORY of-other)
target_link_libraries(other rondo::fortran MPI::MPI_Fortran)
END
    } >cmake/CMakeLists.txt
    (cd cmake/build &&
        cmake -DCMAKE_Fortran_COMPILER="${FC:-gfortran}" ${MPIFC:+-DMPI_Fortran_COMPILER="$MPIFC"} \
            -Drondo_DIR="${pc%/*/*}/cmake/rondo" .. && make) >log 2>&1
}
if command -v cmake >/dev/null; then
    by_cmake || fail "the programs do not compile by CMake"
    RONDO_DEBUG=none timeout 60 cmake/build/alone >out 2>err && fail "made by CMake, alone does not stop at its error"
    grep -q '2.0 2.0 2.0 2.0' out || { cat out err; fail "made by CMake, alone goes wrong"; }
    for program in ready other; do
        [ -z "${MPI_FCLIBS:-}" ] || RONDO_TEST_RANKS=2 sh "$source/test/util/mpirun.sh" "cmake/build/$program" ||
            fail "cg, made by CMake, fails with the $program module"
    done
else
    echo "no cmake: its part is left out"
fi

make -C "$build" uninstall DESTDIR="$dir/root" >log 2>&1 || fail "make uninstall failed"
left=$(find root -type f -o -type l -o -name 'rondo*')
[ -z "$left" ] || fail "make uninstall left: $left"
