/* NCCL_ALGO becomes a RONDO_ALGO of algorithms that serve, on host memory and between GPUs, each by the protocol that
 * NCCL_PROTO asks for. Variables are read once a process: each case has one.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/setting.h"
#include "exec/cuda/cuda.h"
#include "nccl/shim.h"
#include "util/check.h"

/* Nonzero where NCCL_ALGO, NCCL_PROTO and RONDO_PROTO ("": unset) do not make RONDO_ALGO `want`; "": not set. */
static int in_child(int host, const char *algo, const char *proto, const char *own, const char *want)
{
    char text[RD_SETTING_BYTES];
    const char *got;

    setenv("RONDO_NCCL_HOST", host ? "1" : "0", 1);
    setenv("NCCL_ALGO", algo, 1);
    setenv("NCCL_PROTO", proto, 1);
    setenv("RONDO_PROTO", own, 1);
    nc_settings();
    got = rd_setting_text("RONDO_ALGO", text);
    if (strcmp(got ? got : "", want) == 0)
        return 0;
    printf("%s: NCCL_ALGO=%s NCCL_PROTO=%s RONDO_PROTO=%s: RONDO_ALGO=%s, not %s\n", host ? "host memory" : "GPUs",
           algo, proto, own, got ? got : "", want);
    return 1;
}

static void becomes(int host, const char *algo, const char *proto, const char *own, const char *want)
{
    int status = -1;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        int bad = in_child(host, algo, proto, own, want);
        fflush(stdout);
        _exit(bad);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "%s by %s", algo, proto);
}

int main(void)
{
    const char *rings = "allreduce=ring,reduce=ring,broadcast=ring,allgather=ring,reduce_scatter=ring";
    const char *chains = "allreduce=ring,reduce=chain,broadcast=chain,allgather=ring,reduce_scatter=ring";

    unsetenv("RONDO_ALGO");
    becomes(1, "Ring", "", "", rings);
    becomes(1, "tree,RING", "Simple", "",
            "allreduce=tree,reduce=tree,broadcast=tree,allgather=ring,reduce_scatter=ring");
    becomes(1, "PAT", "", "", "allreduce=pat,allgather=pat,reduce_scatter=pat");
    becomes(1, "Ring;allreduce:Tree", "", "",
            "allreduce=tree,reduce=ring,broadcast=ring,allgather=ring,reduce_scatter=ring");
    becomes(1, "NVLS", "", "", "");
    becomes(1, "^Tree", "", "", "");
    if (rd_cuda_built()) {
        becomes(0, "Ring", "", "", chains);
        becomes(0, "Ring", "Simple", "", chains);
        becomes(0, "Tree", "", "", "allreduce=tree,reduce=tree,broadcast=tree");
        becomes(0, "NVLS,Tree", "LL128", "", "allreduce=tree,reduce=tree,broadcast=tree");
        becomes(0, "PAT,Ring", "", "", "allreduce=pat,reduce=chain,broadcast=chain,allgather=pat,reduce_scatter=pat");
        becomes(0, "Tree", "Simple", "", ""); /* trees go by lines */
        becomes(0, "Tree,Ring", "Simple", "", chains);
        becomes(0, "Tree", "Simple", "ll128", "allreduce=tree,reduce=tree,broadcast=tree");
        becomes(0, "allreduce:tree,ring;broadcast:ring", "Simple", "", "allreduce=ring,broadcast=chain");
    }
    return failures != 0;
}
