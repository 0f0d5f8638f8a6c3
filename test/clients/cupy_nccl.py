# CuPy's communicators, in one process for all GPUs and in a process each, and cupyx.distributed over them.
#
# Needs: CuPy with NCCL, 2 GPUs or more.
# Run:   LD_PRELOAD=.../libnccl.so.2 python cupy_nccl.py
#        With RONDO_NCCL_HOST=1 no GPU is needed: CuPy's communicators get NumPy's arrays.
# Exit:  0 all right, 1 not, 77 not to be tried here.
import multiprocessing
import os
import sys

from checks import check, finish, say, served_by, skip

try:
    import cupy
    import numpy
    from cupy.cuda import nccl
    if not nccl.available:
        skip("this CuPy has no NCCL")
    host = os.environ.get("RONDO_NCCL_HOST") == "1"
    n = cupy.cuda.runtime.getDeviceCount() if multiprocessing.parent_process() is None and not host else 2
except (ImportError, RuntimeError) as problem:
    skip(problem)
FLOAT, SUM = nccl.NCCL_FLOAT, nccl.NCCL_SUM


def in_one_process():
    comms = nccl.NcclCommunicator.initAll(2)
    buffers, streams = [], []
    for k in range(2):
        with cupy.cuda.Device(k):
            buffers.append(cupy.arange(1000, dtype=cupy.float32) + k)
            streams.append(cupy.cuda.Stream(non_blocking=True))
            cupy.cuda.Device(k).synchronize()
    nccl.groupStart()
    for k in range(2):
        with cupy.cuda.Device(k):
            comms[k].allReduce(buffers[k].data.ptr, buffers[k].data.ptr, 1000, FLOAT, SUM, streams[k].ptr)
    nccl.groupEnd()
    for k in range(2):
        with cupy.cuda.Device(k):
            streams[k].synchronize()
            assert comms[k].rank_id() == k and comms[k].size() == 2 and comms[k].device_id() == k
            assert numpy.array_equal(cupy.asnumpy(buffers[k]), numpy.arange(1000) * 2 + 1)
            comms[k].check_async_error()
    for comm in comms:
        comm.destroy()
    return "version %d, build %d" % (nccl.get_version(), nccl.get_build_version())


def at(array):
    return array.ctypes.data if host else array.data.ptr


def same(array, want, what):
    assert numpy.array_equal(array if host else cupy.asnumpy(array), want), what


def every_call(comm, rank):
    xp = numpy if host else cupy
    a = xp.arange(12, dtype=numpy.float64) + rank
    out = xp.zeros(24, dtype=numpy.float64)
    double, stream, count = nccl.NCCL_DOUBLE, 0, numpy.arange(12)
    comm.allReduce(at(a), at(out), 12, double, SUM, stream)
    same(out[:12], count * 2 + 1, "allReduce")
    comm.allGather(at(a), at(out), 12, double, stream)
    same(out, numpy.concatenate([count, count + 1]), "allGather")
    comm.broadcast(at(a), at(out), 12, double, 1, stream)
    same(out[:12], count + 1, "broadcast")
    comm.reduce(at(a), at(out), 12, double, SUM, 0, stream)
    if rank == 0:
        same(out[:12], count * 2 + 1, "reduce")
    comm.reduceScatter(at(a), at(out), 6, double, SUM, stream)
    same(out[:6], count[6 * rank:6 * rank + 6] * 2 + 1, "reduceScatter")
    comm.bcast(at(a), 12, double, 0, stream)
    same(a, count, "bcast")
    nccl.groupStart()
    comm.send(at(a), 12, double, 1 - rank, stream)
    comm.recv(at(out), 12, double, 1 - rank, stream)
    nccl.groupEnd()
    same(out[:12], count, "send, recv")
    assert comm.rank_id() == rank and comm.size() == 2 and comm.device_id() == (-1 if host else rank)
    comm.check_async_error()


def raw(rank, pipe):
    if not host:
        cupy.cuda.Device(rank).use()
    if rank == 0:
        identifier = nccl.get_unique_id()
        pipe.send(identifier)
    else:
        identifier = pipe.recv()
    comm = nccl.NcclCommunicator(2, identifier, rank)
    every_call(comm, rank)
    if hasattr(comm, "commSplit"):
        half = comm.commSplit(rank, 0)
        assert half.size() == 1 and half.rank_id() == 0
        half.destroy()
    comm.destroy()


def distributed(rank, pipe):
    import cupyx.distributed
    multiprocessing.set_start_method("fork", force=True)  # its store cannot be pickled for another way
    cupy.cuda.Device(rank).use()
    comm = cupyx.distributed.init_process_group(2, rank, host="127.0.0.1", port=13333)
    for dtype in "bBiIlLqQefdFD":
        x = cupy.arange(2 * 15, dtype="q").astype(dtype)
        out = cupy.zeros(2 * 15, dtype=dtype)
        comm.all_reduce(x, out)
        cupy.testing.assert_allclose(out, x * 2)
        comm.broadcast(out if rank else x, 0)
        if rank:
            cupy.testing.assert_allclose(out, x)
        part = cupy.zeros(15, dtype=dtype)
        comm.reduce_scatter(x.reshape(2, 15), part, 15)
        cupy.testing.assert_allclose(part, 2 * x[15 * rank:15 * (rank + 1)])
        whole = cupy.zeros((2, 15), dtype=dtype)
        comm.all_gather(part, whole, 15)
        cupy.testing.assert_allclose(whole.ravel(), x * 2)
        comm.all_to_all((x + x.dtype.type(rank)).reshape(2, 15), whole)
        comm.scatter(x.reshape(2, 15), part, 0)
        comm.gather(part, whole, 0)
        if rank == 0:
            cupy.testing.assert_allclose(whole.ravel(), x)
        comm.send_recv(part, whole[0], 1 - rank)
    comm.barrier()
    del pipe


def child(function, rank, pipe):
    try:
        function(rank, pipe)
        if not host:
            cupy.cuda.Device(rank).synchronize()
    except BaseException as problem:
        say("rank", rank, type(problem).__name__, problem)
        sys.exit(1)


def in_two_processes(function):
    context = multiprocessing.get_context("spawn")
    pipes = context.Pipe()
    ranks = [context.Process(target=child, args=(function, r, pipes[r])) for r in range(2)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(30)
    codes = [process.exitcode for process in ranks]
    for process in ranks:
        process.kill()
    assert codes == [0, 0], "ranks ended with %s (None: hung)" % codes


if __name__ == "__main__":
    if n < 2:
        skip("%d GPUs" % n)
    served_by()
    if not host:
        check("one process", in_one_process)
    check("two processes", in_two_processes, raw)
    if not host:
        check("cupyx.distributed", in_two_processes, distributed)
    finish()
