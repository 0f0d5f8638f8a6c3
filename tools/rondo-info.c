/* rondo-info: what rondo sees and what it would do. The machine, the table of tunables, and for an operation of a size
 * the whole list of candidates with their prices. It asks the code that the library runs, so it cannot disagree.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"

static const char usage[] =
    "NAME\n"
    "    rondo-info - show what rondo detects, and what it would choose and why\n"
    "\n"
    "SYNOPSIS\n"
    "    rondo-info\n"
    "    rondo-info plan OPERATION SIZE [--ranks N] [--nodes M] [--cores C] [--type T] [--root R]\n"
    "                                   [--played] [--steps] [--rank R]\n"
    "                                   [--device cuda [--multiprocessors N]]\n"
    "    rondo-info plan OPERATION --plot FILE [--measured RECORD] [--ranks N] ...\n"
    "    rondo-info topo [--save FILE | --xml FILE | --graph FILE | --draw FILE]\n"
    "    rondo-info scale [NODESxRANKS...]\n"
    "    rondo-info memory [NODESxRANKS...] [--cores C] [--device cuda]\n"
    "    rondo-info net\n"
    "    rondo-info doctor [--network] [--json]\n"
    "    rondo-info --env | --nccl | --version | --help\n"
    "\n"
    "DESCRIPTION\n"
    "    Without arguments: this host, its processors, NUMA nodes and caches, how many cores this process may\n"
    "    use, and what this rondo was built with. RONDO_TOPO_FILE shows a recorded machine instead.\n"
    "\n"
    "    plan: every algorithm, protocol and message size for the operation, the cheapest first, with the time\n"
    "    that the cost model predicts for a float sum, then what cannot serve, with the reason. RONDO_ALGO,\n"
    "    RONDO_PROTO and the other tunables count as they would in a program. It is taken for granted that ranks may\n"
    "    read each other's memory (protocol cma), which a communicator tries when it is made.\n"
    "\n"
    "    OPERATION is allreduce, reduce, broadcast, allgather, reduce_scatter, alltoall, gather, scatter or barrier.\n"
    "    SIZE is one rank's message in bytes as in rondo-perf (allgather, alltoall, gather, scatter: one block;\n"
    "    reduce_scatter: the whole input), with an optional K, M or G (powers of 1024).\n"
    "\n"
    "    topo: this machine's GPUs, how each pair reaches each other, the network devices near each, the best ring\n"
    "    between them, and what would be chosen between all of them. --save writes the machine down, --xml writes\n"
    "    NCCL's topology XML; with RONDO_TOPO_FILE either stands for the machine here and in plan --device cuda.\n"
    "    --graph writes the ring as NCCL's graph XML, which RONDO_GRAPH_FILE reads.\n"
    "    --draw makes a picture of processors, caches, GPUs and paths.\n"
    "\n"
    "    scale: what communicators of many nodes cost (default: 4x8 64x8 512x8 12500x8), from the code that makes and\n"
    "    plans them, run here for one of their ranks: bootstrap, memory, and for some operations the plan.\n"
    "\n"
    "    memory: the bytes that a communicator takes of one rank (default: 1x8 4x8 64x8) before it is made, as the\n"
    "    tunables are now: of the GPU, pinned, shared with the node's ranks, and address space for the network, whose\n"
    "    pages come when they are first used. rondo_comm_memory says the same to a program.\n"
    "\n"
    "    net: the interfaces of this host, on which of them ranks would meet and by which data would go to other "
    "nodes,\n"
    "    and why; doc/cluster.md explains each line.\n"
    "\n"
    "    doctor: tries what a job needs of this host, and says what is well, what could be better, and what is wrong\n"
    "    and how to mend it. Start it as the job is started, by its launcher: limits differ.\n"
    "    With --network it looks at the ways between the nodes of a job, on which mpirun or srun must start it, with "
    "a\n"
    "    rank on each (more take no part). Every node connects to every other one, and each pair measures the delay "
    "of\n"
    "    short messages and the rate of long ones both ways. What is blocked, slow or set up differently is named, "
    "with\n"
    "    what to do about it; doc/cluster.md has a section on it.\n"
    "\n"
    "OPTIONS\n"
    "    --ranks N    ranks of the communicator (default: the cores that may be used here, at least 2)\n"
    "    --nodes M    nodes over which they are spread evenly (default 1)\n"
    "    --cores C    cores that the ranks of one node may use (default: as here)\n"
    "    --played     the nodes are played on one machine (RONDO_HOSTID) and share its cores\n"
    "    --type T     type of an element (default float32): sizes are rounded down to whole elements\n"
    "    --root R     root of a rooted operation (default 0)\n"
    "    --steps      also the steps of the chosen program, of every rank\n"
    "    --rank R     the steps of this rank alone\n"
    "    --plot FILE  in place of a table a picture, .svg or .png, of the times predicted for 8 bytes to 64 MiB\n"
    "    --measured RECORD        with --plot: what a record of bench/record.py measured, as dots\n"
    "    --draw FILE  topo as a picture, .svg or .png\n"
    "    --device cuda            memory of CUDA communicators; the plan between N GPUs of one node, of "
    "--multiprocessors each: by default all\n"
    "                 GPUs of this machine or of RONDO_TOPO_FILE, or 132 each; needs no GPU\n"
    "    --network    doctor of the nodes of a job in place of this host\n"
    "    --json       the doctor's findings as one document of JSON, for programs: rondo-info(1) lists its fields\n"
    "    --env        every tunable: what is allowed, its default, its value now\n"
    "    --nccl       what libnccl.so.2 serves of NCCL, function by function, and of its environment\n"
    "\n"
    "EXIT STATUS\n"
    "    0 good; 1 what is forced cannot serve, a variable has a value that is not allowed, the doctor finds "
    "something\n"
    "    wrong, or the output cannot be written; 2 usage.\n"
    "\n"
    "EXAMPLES\n"
    "    rondo-info plan allreduce 1M --ranks 4\n"
    "    RONDO_ALGO=ring rondo-info plan broadcast 64K --ranks 8 --steps --rank 3\n";

/* Errors have been said already, unless RONDO_DEBUG=none or a file keeps them from the terminal. */
static int failed(void)
{
    if (!rd_log_enabled(RD_LOG_WARN) || getenv("RONDO_DEBUG_FILE"))
        fprintf(stderr, "rondo-info: %s\n", rd_thread_error());
    return 1;
}

static int serve(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    rd_env_t env;
    int code;

    if (strcmp(what, "--help") == 0 || strcmp(what, "-h") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    if (strcmp(what, "--version") == 0) {
        int v = rondo_version();
        printf("rondo-info %d.%d.%d\n", v / 10000, v / 100 % 100, v % 100);
        return 0;
    }
    if (strcmp(what, "--env") == 0) {
        rd_env_print(stdout);
        return 0;
    }
    if (strcmp(what, "--nccl") == 0) {
        info_nccl();
        return 0;
    }
    if (*what && strcmp(what, "plan") != 0 && strcmp(what, "topo") != 0 && strcmp(what, "scale") != 0 &&
        strcmp(what, "memory") != 0 && strcmp(what, "net") != 0 && strcmp(what, "doctor") != 0) {
        fprintf(stderr,
                "rondo-info: \"%s\" is neither plan, topo, scale, memory, net, doctor, --env, --nccl, --version nor "
                "--help\n",
                what);
        return 2;
    }
    if (rd_env_read(&env) != RONDO_SUCCESS)
        return failed();
    if (strcmp(what, "doctor") == 0)
        return info_doctor(&env, argc - 2, argv + 2);
    code = !*what                        ? info_machine(&env)
           : strcmp(what, "net") == 0    ? info_net(&env)
           : strcmp(what, "topo") == 0   ? info_topo(&env, argc - 2, argv + 2)
           : strcmp(what, "scale") == 0  ? info_scale(&env, argc - 2, argv + 2)
           : strcmp(what, "memory") == 0 ? info_memory(&env, argc - 2, argv + 2)
                                         : info_plan(&env, argc - 2, argv + 2);
    return code == 1 ? failed() : code;
}

int main(int argc, char **argv)
{
    int code = serve(argc, argv);

    if ((fflush(stdout) == 0 && !ferror(stdout)) || code != 0)
        return code;
    fprintf(stderr, "rondo-info: the output could not be written\n");
    return 1;
}
