# PyTorch's collectives, all of c10d's that go to NCCL, a process a GPU.
#
# Needs: PyTorch with CUDA, 2 GPUs or more.
# Run:   LD_PRELOAD=.../libnccl.so.2 torchrun --nproc-per-node=2 torch_c10d.py
#        TORCH_NCCL_USE_COMM_NONBLOCKING=0 or 1 chooses how communicators are made.
# Exit:  0 all right, 1 not, 77 not to be tried here.
import datetime
import os

from checks import check, failed, finish, rank, say, served_by, skip, world

try:
    import torch
    import torch.distributed as dist
except ImportError as problem:
    skip(problem)
if world < 2 or torch.cuda.device_count() < world:
    skip("%d processes, %d GPUs" % (world, torch.cuda.device_count()))

os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29511")
device = torch.device("cuda", rank)
torch.cuda.set_device(device)
dist.init_process_group("nccl", rank=rank, world_size=world, device_id=device,
                        timeout=datetime.timedelta(seconds=30))
served_by()
say("torch", torch.__version__, "NCCL", torch.cuda.nccl.version(), torch.cuda.get_device_name())
n = world


def same(got, want, what=""):
    torch.cuda.synchronize()
    got, want = got.cpu().double(), want.cpu().double()
    if got.shape != want.shape or not torch.equal(got, want):
        where = (got != want).nonzero()
        raise AssertionError("%s: %d of %d differ, first at %s: %s, should be %s" % (
            what, len(where), got.numel(), where[0].tolist() if len(where) else "-",
            got[tuple(where[0])].item() if len(where) else got.shape,
            want[tuple(where[0])].item() if len(where) else want.shape))


def mine(count, dtype=torch.float32, of=None):
    """Small whole numbers, which every type holds: sums are exact in any order."""
    of = rank if of is None else of
    return ((torch.arange(count, device=device) * 7 + of * 3) % 5 + 1).to(dtype)


def summed(count, dtype=torch.float32):
    return sum(mine(count, torch.float64, r) for r in range(n)).to(dtype)


def all_reduce_types():
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int32,
                  torch.int64):
        for count in (1, 17, 4099, 1000003):
            x = mine(count, dtype)
            dist.all_reduce(x)
            same(x, summed(count, dtype), "%s of %d" % (dtype, count))
    x = torch.view_as_complex(torch.stack((mine(100), mine(100)), 1))
    dist.all_reduce(x)
    same(torch.view_as_real(x), torch.stack((summed(100), summed(100)), 1), "complex")
    x = torch.tensor([rank == 0, False, True], device=device)
    dist.all_reduce(x)
    same(x, torch.tensor([True, False, True]), "bool")


def all_reduce_operators():
    every = torch.stack([mine(1001, torch.float64, r) for r in range(n)])
    for op, want in ((dist.ReduceOp.SUM, every.sum(0)), (dist.ReduceOp.PRODUCT, every.prod(0)),
                     (dist.ReduceOp.MIN, every.amin(0)), (dist.ReduceOp.MAX, every.amax(0)),
                     (dist.ReduceOp.AVG, every.sum(0) / n)):
        for dtype in (torch.float32, torch.float64):
            x = mine(1001, dtype)
            dist.all_reduce(x, op)
            if op == dist.ReduceOp.AVG and n & (n - 1):
                assert torch.allclose(x.double(), want), "average"
            else:
                same(x, want.to(dtype), str(op))


def premul_sum():
    for factor in (2.0, torch.tensor([4.0], device=device)):
        for dtype in (torch.float32, torch.float16):
            scale = factor.to(dtype) if isinstance(factor, torch.Tensor) else factor
            x = mine(999, dtype)
            dist.all_reduce(x, dist._make_nccl_premul_sum(scale))
            same(x, summed(999) * float(factor), str(type(factor)))
    out = torch.empty(10, device=device)
    dist.reduce_scatter_tensor(out, torch.ones(10 * n, device=device), dist._make_nccl_premul_sum(0.5))
    same(out, torch.full((10,), n / 2), "reduce_scatter")


def fp8():
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        x = mine(1000).to(dtype)
        every = torch.empty(1000 * n, device=device, dtype=dtype)
        dist.all_gather_into_tensor(every, x)
        same(every.float(), torch.cat([mine(1000, of=r) for r in range(n)]), "gather of %s" % dtype)
        dist.all_reduce(x)
        same(x.float(), summed(1000).to(dtype).float(), "sum of %s" % dtype)


def large():
    x = mine(1 << 26)  # 256 MB
    dist.all_reduce(x)
    same(x[:1000], summed(1 << 26)[:1000])
    same(x[-1000:], summed(1 << 26)[-1000:])


def rooted():
    for root in range(n):
        x = mine(5000)
        dist.broadcast(x, root)
        same(x, mine(5000, of=root), "broadcast")
        x = mine(5000)
        dist.reduce(x, root)
        if rank == root:
            same(x, summed(5000), "reduce")
        every = [torch.empty(33, device=device) for _ in range(n)] if rank == root else None
        dist.gather(mine(33), every, root)
        for r in range(n if rank == root else 0):
            same(every[r], mine(33, of=r), "gather")
        out = torch.empty(33, device=device)
        dist.scatter(out, [mine(33, of=10 + r) for r in range(n)] if rank == root else None, root)
        same(out, mine(33, of=10 + rank), "scatter")


def gathers():
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool):
        every = [torch.empty(777, device=device, dtype=dtype) for _ in range(n)]
        dist.all_gather(every, mine(777, dtype))
        for r in range(n):
            same(every[r], mine(777, dtype, r), "all_gather")
        whole = torch.empty(777 * n, device=device, dtype=dtype)
        dist.all_gather_into_tensor(whole, mine(777, dtype))
        same(whole, torch.cat([mine(777, dtype, r) for r in range(n)]), "all_gather_into_tensor")
    uneven = [torch.empty(10 + 5 * r, device=device) for r in range(n)]
    dist.all_gather(uneven, mine(10 + 5 * rank))
    for r in range(n):
        same(uneven[r], mine(10 + 5 * r, of=r), "uneven all_gather")
    place = torch.zeros(64 * n, device=device)  # in place
    place[64 * rank:64 * (rank + 1)] = mine(64)
    dist.all_gather_into_tensor(place, place[64 * rank:64 * (rank + 1)])
    same(place, torch.cat([mine(64, of=r) for r in range(n)]), "in place")


def reduce_scatters():
    block = [mine(501, of=rank + 10 * k) for k in range(n)]
    want = sum(mine(501, of=r + 10 * rank) for r in range(n))
    out = torch.empty(501, device=device)
    dist.reduce_scatter(out, block)
    same(out, want, "reduce_scatter")
    out.zero_()
    dist.reduce_scatter_tensor(out, torch.cat(block))
    same(out, want, "reduce_scatter_tensor")
    whole = torch.cat(block)
    dist.reduce_scatter_tensor(whole[501 * rank:501 * (rank + 1)], whole)
    same(whole[501 * rank:501 * (rank + 1)], want, "in place")
    out = torch.empty(20 + rank, device=device)  # uneven blocks
    dist.reduce_scatter(out, [mine(20 + k, of=rank) for k in range(n)])
    same(out, sum(mine(20 + rank, of=r) for r in range(n)), "uneven reduce_scatter")


def all_to_alls():
    out = torch.empty(100 * n, device=device)
    dist.all_to_all_single(out, torch.cat([mine(100, of=rank + 5 * k) for k in range(n)]))
    same(out, torch.cat([mine(100, of=r + 5 * rank) for r in range(n)]), "all_to_all_single")
    send = [3 + rank + 2 * k for k in range(n)]
    take = [3 + r + 2 * rank for r in range(n)]
    out = torch.empty(sum(take), device=device, dtype=torch.bfloat16)
    dist.all_to_all_single(out, torch.cat([mine(c, torch.bfloat16, rank) for c in send]), take, send)
    same(out, torch.cat([mine(c, torch.bfloat16, r) for r, c in enumerate(take)]), "uneven")
    outs = [torch.empty(c, device=device) for c in take]
    dist.all_to_all(outs, [mine(c) for c in send])
    for r in range(n):
        same(outs[r], mine(take[r], of=r), "lists")
    some = [0 if k != (rank + 1) % n else 7 for k in range(n)]  # most of them nothing
    take = [0 if k != (rank - 1) % n else 7 for k in range(n)]
    out = torch.empty(7, device=device)
    dist.all_to_all_single(out, mine(7), take, some)
    same(out, mine(7, of=(rank - 1) % n), "one block")


def messages():
    for count in (1, 1000, 1 << 20):
        x = mine(count)
        if rank == 0:
            dist.send(x, 1)
            dist.recv(x, 1)
        elif rank == 1:
            got = torch.empty(count, device=device)
            dist.recv(got, 0)
            same(got, mine(count, of=0), "recv")
            dist.send(x, 0)
        if rank == 0:
            same(x, mine(count, of=1), "back")
    got = torch.empty(2222, device=device)
    ops = [dist.P2POp(dist.isend, mine(2222), (rank + 1) % n), dist.P2POp(dist.irecv, got, (rank - 1) % n)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    same(got, mine(2222, of=(rank - 1) % n), "batch_isend_irecv")
    gots = [torch.empty(50, device=device) for _ in range(6)]
    ops = []
    for k in range(6):  # several messages of a pair, in order
        ops.append(dist.P2POp(dist.irecv, gots[k], (rank - 1) % n))
        ops.append(dist.P2POp(dist.isend, mine(50, of=rank + 100 * k), (rank + 1) % n))
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    for k in range(6):
        same(gots[k], mine(50, of=(rank - 1) % n + 100 * k), "message %d" % k)


def coalesced():
    xs = [mine(100 + 10 * k) for k in range(5)]
    with dist._coalescing_manager(device=device):
        for x in xs:
            dist.all_reduce(x)
    for k in range(5):
        same(xs[k], summed(100 + 10 * k), "all_reduce %d" % k)
    outs = [torch.empty((30 + k) * n, device=device) for k in range(3)]
    with dist._coalescing_manager(device=device, async_ops=True) as manager:
        for k in range(3):
            dist.all_gather_into_tensor(outs[k], mine(30 + k))
    manager.wait()
    for k in range(3):
        same(outs[k], torch.cat([mine(30 + k, of=r) for r in range(n)]), "all_gather %d" % k)
    outs = [torch.empty(40 + k, device=device) for k in range(3)]
    with dist._coalescing_manager(device=device):
        for k in range(3):
            dist.reduce_scatter_tensor(outs[k], torch.ones((40 + k) * n, device=device) * (rank + 1))
    for k in range(3):
        same(outs[k], torch.full((40 + k,), n * (n + 1) / 2), "reduce_scatter %d" % k)


def flying():
    xs = [mine(1 + 500 * k) for k in range(100)]
    works = [dist.all_reduce(x, async_op=True) for x in xs]
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        y = mine(321)
        dist.all_reduce(y)
    for work in works:
        work.wait()
    for k, x in enumerate(xs):
        same(x, summed(1 + 500 * k), "the %dth" % k)
    same(y, summed(321), "on another stream")


def objects():
    every = [None] * n
    dist.all_gather_object(every, {"rank": rank, "text": "x" * (100 * rank)})
    assert [o["rank"] for o in every] == list(range(n))
    some = ["from 1"] if rank == 1 else [None]
    dist.broadcast_object_list(some, 1)
    assert some == ["from 1"]
    dist.barrier()
    dist.barrier(device_ids=[rank])


def subgroups():
    both = dist.new_group(list(range(n)))
    single = [dist.new_group([r]) for r in range(n)][rank]
    x = mine(100)
    dist.all_reduce(x, group=both)
    same(x, summed(100), "new_group")
    x = mine(100)
    dist.all_reduce(x, group=single)
    same(x, mine(100), "a group of one")
    bound = dist.new_group(list(range(n)), device_id=device)
    x = mine(100)
    dist.all_reduce(x, group=bound)
    same(x, summed(100), "new_group(device_id)")
    part = dist.split_group(split_ranks=[list(range(n))])
    x = mine(100)
    dist.all_reduce(x, group=part)
    same(x, summed(100), "split_group")
    for k in range(3):  # two groups in turns
        x, y = mine(1000), mine(1000)
        a = dist.all_reduce(x, group=both, async_op=True)
        b = dist.all_reduce(y, group=part, async_op=True)
        a.wait()
        b.wait()
        same(x, summed(1000), "the one")
        same(y, summed(1000), "the other")
    dist.destroy_process_group(part)
    dist.destroy_process_group(both)


def graphs():
    x, y, z = mine(1000), torch.empty(1000 * n, device=device), torch.empty(10, device=device)
    w, got = torch.ones(10 * n, device=device), torch.empty(77, device=device)
    source = mine(77)

    def body():
        dist.all_reduce(x)
        dist.all_gather_into_tensor(y, x)
        dist.reduce_scatter_tensor(z, w)
        ops = [dist.P2POp(dist.isend, source, (rank + 1) % n), dist.P2POp(dist.irecv, got, (rank - 1) % n)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        body()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    dist.barrier()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        body()
    for k in range(5):
        x.copy_(mine(1000) + k)
        source.copy_(mine(77, of=rank + k))
        graph.replay()
        torch.cuda.synchronize()
        same(x, summed(1000) + n * k, "replayed sum")
        same(y, (summed(1000) + n * k).repeat(n), "replayed gather")
        same(z, torch.full((10,), float(n)), "replayed reduce_scatter")
        same(got, mine(77, of=(rank - 1) % n + k), "replayed message")
        plain = mine(5)
        dist.all_reduce(plain)
        same(plain, summed(5), "between replays")


def pools():
    backend = dist.group.WORLD._get_backend(device)
    pool = torch.cuda.MemPool(backend.mem_allocator)
    with torch.cuda.use_mem_pool(pool):
        x = mine(1 << 20)
    backend.register_mem_pool(pool)
    for _ in range(3):
        x.copy_(mine(1 << 20))
        dist.all_reduce(x)
        same(x, summed(1 << 20), "in memory of ncclMemAlloc")
    backend.deregister_mem_pool(pool)
    return "registered"


def windows():
    backend = dist.group.WORLD._get_backend(device)
    pool = torch.cuda.MemPool(backend.mem_allocator)
    with torch.cuda.use_mem_pool(pool):
        x = mine(1 << 20)
    backend.register_mem_pool(pool, symm=True)
    dist.all_reduce(x)
    same(x, summed(1 << 20), "in a window")
    backend.deregister_mem_pool(pool)


def estimate():
    with dist._time_estimator(device=device) as estimator:
        dist.all_reduce(mine(1 << 20))
    assert estimator.estimated_time is not None and estimator.estimated_time >= 0
    return "%g us" % estimator.estimated_time


check("all_reduce of every type", all_reduce_types)
check("operators", all_reduce_operators)
check("PREMUL_SUM", premul_sum)
check("fp8", fp8)
check("256 MB", large)
check("broadcast, reduce, gather, scatter", rooted)
check("all_gather", gathers)
check("reduce_scatter", reduce_scatters)
check("all_to_all", all_to_alls)
check("send, recv, batches", messages)
check("coalesced", coalesced)
check("100 at once", flying)
check("objects, barrier", objects)
check("subgroups, split", subgroups)
check("CUDA graphs", graphs)
check("memory pool, registered", pools)
if os.environ.get("TORCH_NCCL_USE_COMM_NONBLOCKING") != "1":
    check("memory pool, window", windows)
check("estimated time", estimate)
torch.cuda.synchronize()
if not failed:  # else the ranks may stand apart
    check("destroy_process_group", dist.destroy_process_group)
finish()
