#!/bin/sh
# Programs outside the tree, as users build them: compiled with nccl.h as C and as C++ and linked with -lnccl, and one
# that knows neither header nor library and takes what LD_PRELOAD or the search path gives. What NCCL_DEBUG prints, and
# what becomes of NCCL's other variables, is looked for in their output.
set -u
source=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
libs=${top_builddir:-.}/.libs
[ -e "$libs/libnccl.so.2" ] || { echo "no libnccl.so.2 was built"; exit 77; }
for name in $(env | sed -n 's/^\(NCCL_[A-Z0-9_]*\)=.*/\1/p; s/^\(RONDO_[A-Z0-9_]*\)=.*/\1/p'); do
    unset "$name"
done
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
failed=0

cat >"$dir/linked.c" <<'END'
#include <nccl.h>
#include <stdio.h>
/* Four ranks, one thread. */
int main(void)
{
    ncclComm_t comm[4];
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    float in[4], out[4];
    int r;

    config.commName = "linked";
    if (ncclGetUniqueId(&id) != ncclSuccess || ncclGroupStart() != ncclSuccess)
        return 1;
    for (r = 0; r < 4; r++)
        if (ncclCommInitRankConfig(&comm[r], 4, id, r, &config) != ncclSuccess)
            return 1;
    if (ncclGroupEnd() != ncclSuccess) {
        printf("failed: %s\n", ncclGetLastError(NULL));
        return 3;
    }
    void *handle = NULL;
    if (ncclCommRegister(comm[0], in, sizeof in, &handle) != ncclSuccess ||
        ncclCommDeregister(comm[0], handle) != ncclSuccess)
        return 1;
    ncclGroupStart();
    for (r = 0; r < 4; r++) {
        in[r] = (float)r;
        ncclAllReduce(&in[r], &out[r], 1, ncclFloat, ncclSum, comm[r], (cudaStream_t)0);
    }
    if (ncclGroupEnd() != ncclSuccess)
        return 1;
    for (r = 0; r < 4; r++)
        if (out[r] != 6 || ncclCommDestroy(comm[r]) != ncclSuccess)
            return 1;
    printf("the sum is %g\n", out[3]);
    return 0;
}
END
cat >"$dir/opened.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
typedef struct { char bytes[128]; } id_t128; /* handed over by value */
int main(void)
{
    void *lib = dlopen("libnccl.so.2", RTLD_NOW), *comm = NULL;
    int (*id_get)(id_t128 *), (*init)(void **, int, id_t128, int), (*destroy)(void *);
    int (*reduce)(const void *, void *, size_t, int, int, void *, void *);
    double in = 2.5, out = 0;
    id_t128 id;
    if (!lib) {
        printf("%s\n", dlerror());
        return 2;
    }
    id_get = (int (*)(id_t128 *))dlsym(lib, "ncclGetUniqueId");
    init = (int (*)(void **, int, id_t128, int))dlsym(lib, "ncclCommInitRank");
    reduce = (int (*)(const void *, void *, size_t, int, int, void *, void *))dlsym(lib, "pncclAllReduce");
    destroy = (int (*)(void *))dlsym(lib, "ncclCommDestroy");
    if (!id_get || !init || !reduce || !destroy || id_get(&id) || init(&comm, 1, id, 0))
        return 1;
    if (reduce(&in, &out, 1, 8, 0, comm, NULL) || out != 2.5 || destroy(comm))
        return 1;
    return dlclose(lib);
}
END
cp "$dir/linked.c" "$dir/linked.cc"

try() {
    "$@" >"$dir/log" 2>&1 || { echo "failed: $*"; cat "$dir/log"; failed=1; }
}
# says PATTERN: a line of the last output
says() {
    grep -q -e "$1" "$dir/log" || { echo "not said: $1"; cat "$dir/log"; failed=1; }
}
silent() {
    grep -q -e "$1" "$dir/log" && { echo "said: $1"; cat "$dir/log"; failed=1; }
}
# The first word alone, behind a ccache: configure may have added a -std of its own.
c=${CC:-cc}
c=${c#ccache }
c=${c%% *}
cxx=${CXX:-c++}
cxx=${cxx#ccache }
link="-L$libs -lnccl -Wl,-rpath,$libs -Wl,-rpath-link,$libs"
try "$c" -std=c11 -pedantic -Wall -Wextra -Werror "-I$source/lib/nccl" "$dir/linked.c" -o "$dir/linked" $link
try "$c" "$dir/opened.c" -o "$dir/opened" -ldl
try timeout 60 env RONDO_NCCL_HOST=1 "$dir/linked"
says 'the sum is 6'
silent 'NCCL'
if command -v "$cxx" >/dev/null 2>&1; then
    try "$cxx" -std=c++17 -pedantic -Wall -Wextra -Werror "-I$source/lib/nccl" "$dir/linked.cc" -o "$dir/linked++" $link
    try timeout 60 env RONDO_NCCL_HOST=1 "$dir/linked++"
else
    echo "no C++ compiler: the C++17 half is not checked"
fi
try timeout 60 env RONDO_NCCL_HOST=1 LD_PRELOAD="$libs/libnccl.so.2" "$dir/opened"
try timeout 60 env RONDO_NCCL_HOST=1 LD_LIBRARY_PATH="$libs" "$dir/opened"

# One line proves who serves; INFO says who was made, and what became of each variable.
try timeout 60 env RONDO_NCCL_HOST=1 NCCL_DEBUG=VERSION "$dir/linked"
says 'NCCL version 2\.[0-9.]* served by rondo'
silent 'NCCL INFO'
try timeout 60 env RONDO_NCCL_HOST=1 NCCL_DEBUG=INFO NCCL_FOO=1 NCCL_NTHREADS=64 NCCL_ALGO=Ring NCCL_PROTO=Simple \
    NCCL_SOCKET_IFNAME==lo NCCL_P2P_DISABLE=1 NCCL_BUFFSIZE=1048576 NCCL_HOSTID=here "$dir/linked"
for rank in 0 1 2 3; do
    says "NCCL INFO .* rank $rank nranks 4 cudaDev -1 .*Init COMPLETE"
done
says 'NCCL_FOO means nothing'
says 'NCCL_NTHREADS has no effect'
says 'NCCL_ALGO: .*RONDO_ALGO=broadcast=ring,reduce=ring,allgather=ring,reduce_scatter=ring,allreduce=ring'
says 'NCCL_PROTO: .*RONDO_PROTO=simple'
says 'NCCL_SOCKET_IFNAME: .*RONDO_IFACE='
says 'NCCL_P2P_DISABLE: .*RONDO_CMA=0'
says 'NCCL_BUFFSIZE: .*RONDO_SLOT_BYTES=131072'
says 'NCCL_HOSTID: .*RONDO_HOSTID=here'
says ' linked: ' # the config's name, in rondo's own lines
try timeout 60 env RONDO_NCCL_HOST=1 NCCL_DEBUG=INFO NCCL_ALGO='Tree;allgather:PAT' RONDO_PROTO=simple NCCL_PROTO=Simple \
    NCCL_SOCKET_IFNAME=^lo0,none NCCL_DEBUG_FILE="$dir/file.%p" "$dir/linked"
silent 'NCCL INFO'
cat "$dir"/file.* >"$dir/log" 2>&1
says 'NCCL_ALGO: .*RONDO_ALGO=broadcast=tree,reduce=tree,allgather=pat,allreduce=tree$'
says 'RONDO_PROTO=simple takes precedence'
try timeout 60 env RONDO_NCCL_HOST=1 NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=^INIT NCCL_FOO=1 "$dir/linked"
says 'NCCL_FOO means nothing'
silent 'Init COMPLETE'
# A profiler plugin, by NCCL's variable; without it, by the name that NCCL looks for.
recorder=$libs/libnccl-profiler-recorder7.so
if [ -e "$recorder" ]; then
    try timeout 60 env RONDO_NCCL_HOST=1 NCCL_DEBUG=INFO NCCL_PROFILER_PLUGIN="$recorder" "$dir/linked"
    says 'NCCL_PROFILER_PLUGIN: .*RONDO_PROFILER=.*recorder7'
    says 'profiler plugin recorder, version 7'
    mkdir "$dir/plain" && cp "$recorder" "$dir/plain/libnccl-profiler.so"
    try timeout 60 env RONDO_NCCL_HOST=1 NCCL_DEBUG=INFO LD_LIBRARY_PATH="$dir/plain" "$dir/linked"
    says 'profiler plugin recorder, version 7'
    try timeout 60 env RONDO_NCCL_HOST=1 NCCL_DEBUG=INFO NCCL_PROFILER_PLUGIN=none LD_LIBRARY_PATH="$dir/plain" \
        "$dir/linked"
    silent 'profiler plugin'
fi
try timeout 60 env RONDO_NCCL_HOST=1 NCCL_DEBUG=WARN "$dir/linked"
silent 'profiler'
# Calls and registrations, in NCCL's words, only where they are asked for.
try timeout 60 env RONDO_NCCL_HOST=1 NCCL_DEBUG=INFO "$dir/linked"
silent 'AllReduce: opCount'
try timeout 60 env RONDO_NCCL_HOST=1 NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL,REG "$dir/linked"
says 'NCCL INFO AllReduce: opCount 0 sendbuff 0x[0-9a-f]* recvbuff 0x[0-9a-f]* count [0-9]* datatype [0-9]* op 0 root 0 comm 0x[0-9a-f]* \[nranks=4\] stream'
says 'NCCL INFO register comm 0x[0-9a-f]* buffer 0x[0-9a-f]* size 16'
silent 'Init COMPLETE'
# Variables that cannot be translated change nothing.
try timeout 60 env RONDO_NCCL_HOST=1 NCCL_ALGO=NVLS NCCL_PROTO=LL128 NCCL_SOCKET_IFNAME=nosuch NCCL_BUFFSIZE=x \
    NCCL_COMM_BLOCKING=7 NCCL_SOCKET_FAMILY=AF_X "$dir/linked"
says 'the sum is 6'
# Without a GPU and without being asked for host memory.
if timeout 60 "$dir/linked" >"$dir/log" 2>&1; then
    echo "no GPU was needed"
else
    says 'NCCL WARN\|^rondo ' # the driver is missing, or rondo's part for it
fi
exit $failed
