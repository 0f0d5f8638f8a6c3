# torch.cuda.nccl and torch.cuda.comm: one process, one thread, all GPUs, communicators by ncclCommInitAll.
#
# Needs: PyTorch with CUDA, 2 GPUs or more.
# Run:   LD_PRELOAD=.../libnccl.so.2 python torch_one_process.py
# Exit:  0 all right, 1 not, 77 not to be tried here.
from checks import check, finish, say, served_by, skip

try:
    import torch
    from torch.cuda import nccl
except ImportError as problem:
    skip(problem)
n = torch.cuda.device_count()
if n < 2:
    skip("%d GPUs" % n)


def each(count):
    return [torch.arange(count, device="cuda:%d" % k, dtype=torch.float32) + k for k in range(n)]


def want(count):
    return torch.arange(count, dtype=torch.float32) * n + n * (n - 1) / 2


def all_reduce():
    for count in (1, 1000, 1 << 22):
        x = each(count)
        nccl.all_reduce(x)
        for t in x:
            assert torch.equal(t.cpu(), want(count)), count


def others():
    x = each(100)
    nccl.broadcast(x, 0)  # PyTorch takes other roots, and broadcasts from 0 all the same
    for t in x:
        assert torch.equal(t.cpu(), each(100)[0].cpu())
    x = each(100)
    out = torch.empty(100, device="cuda:0")
    nccl.reduce(x, out, 0)
    assert torch.equal(out.cpu(), want(100))
    outs = [torch.empty(100 * n, device="cuda:%d" % k) for k in range(n)]
    nccl.all_gather(each(100), outs)
    for t in outs:
        assert torch.equal(t.cpu(), torch.cat([c.cpu() for c in each(100)]))
    outs = [torch.empty(50, device="cuda:%d" % k) for k in range(n)]
    nccl.reduce_scatter(each(50 * n), outs)
    for k, t in enumerate(outs):
        assert torch.equal(t.cpu(), want(50 * n)[50 * k:50 * (k + 1)])


def data_parallel():
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(10, 20), torch.nn.ReLU(), torch.nn.Linear(20, 3)).cuda(0)
    x = torch.randn(8 * n, 10, device="cuda:0")
    parallel = torch.nn.DataParallel(model, device_ids=list(range(n)))
    assert torch.allclose(parallel(x), model(x), atol=1e-6)
    parallel(x).sum().backward()


check("all_reduce", all_reduce)
served_by()
check("broadcast, reduce, all_gather, reduce_scatter", others)
check("DataParallel", data_parallel)
say("current device", torch.cuda.current_device())
finish()
