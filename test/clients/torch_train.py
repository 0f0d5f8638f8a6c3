# A small model trained by DistributedDataParallel and by FSDP (fully_shard), and DDP within a CUDA graph. Losses are
# printed digit by digit: equal lines under two libraries are equal bits.
#
# Needs: PyTorch with CUDA, 2 GPUs or more.
# Run:   LD_PRELOAD=.../libnccl.so.2 torchrun --nproc-per-node=2 torch_train.py
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
os.environ.setdefault("MASTER_PORT", "29512")
os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")  # DDP wants that within a graph
device = torch.device("cuda", rank)
torch.cuda.set_device(device)
torch.backends.cuda.matmul.allow_tf32 = False
dist.init_process_group("nccl", rank=rank, world_size=world, timeout=datetime.timedelta(seconds=30))
served_by()
STEPS = 20


def model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 256), torch.nn.GELU(),
                               torch.nn.Linear(256, 8)).to(device)


def data(step):
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(32 * world, 64, generator=generator)
    return x, x[:, :8].sin()


def train(wrapped, optimizer, name):
    """The mean loss of all ranks, step by step."""
    losses = []
    for step in range(STEPS):
        x, y = (t[32 * rank:32 * (rank + 1)].to(device) for t in data(step))
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(wrapped(x), y)
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        losses.append(mean.item())
    if rank == 0:
        for k in (0, 1, STEPS - 1):
            say("loss %s %d %s" % (name, k, float(losses[k]).hex()))
    return losses


def alone():
    """The same on one GPU with the whole batch."""
    m = model()
    optimizer = torch.optim.SGD(m.parameters(), 0.1)
    losses = []
    for step in range(STEPS):
        x, y = (t.to(device) for t in data(step))
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(m(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def compare(losses):
    want = alone()
    worst = max(abs(a - b) / b for a, b in zip(losses, want))
    assert worst < 1e-4, "losses %s, alone %s" % (losses[-3:], want[-3:])
    assert losses[-1] < losses[0] * 0.95, "it does not learn: %s" % losses
    return "%.6f to %.6f, alone the same within %.1e" % (losses[0], losses[-1], worst)


def ddp():
    from torch.nn.parallel import DistributedDataParallel
    wrapped = DistributedDataParallel(model(), device_ids=[rank], bucket_cap_mb=0.1)
    return compare(train(wrapped, torch.optim.SGD(wrapped.parameters(), 0.1), "ddp"))


def ddp_twice():
    from torch.nn.parallel import DistributedDataParallel
    runs = []
    for _ in range(2):
        wrapped = DistributedDataParallel(model(), device_ids=[rank])
        runs.append(train(wrapped, torch.optim.SGD(wrapped.parameters(), 0.1), "again"))
    assert runs[0] == runs[1], "two runs differ"


def ddp_bf16():
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
    from torch.nn.parallel import DistributedDataParallel
    wrapped = DistributedDataParallel(model(), device_ids=[rank], gradient_as_bucket_view=True)
    wrapped.register_comm_hook(None, bf16_compress_hook)
    losses = train(wrapped, torch.optim.SGD(wrapped.parameters(), 0.1), "bf16")
    assert losses[-1] < losses[0] * 0.95, "it does not learn: %s" % losses


def fsdp():
    from torch.distributed.fsdp import fully_shard
    m = model()
    for layer in m:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer)
    fully_shard(m)
    return compare(train(m, torch.optim.SGD(m.parameters(), 0.1), "fsdp"))


def graphed():
    from torch.nn.parallel import DistributedDataParallel
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        wrapped = DistributedDataParallel(model(), device_ids=[rank])
        optimizer = torch.optim.SGD(wrapped.parameters(), 0.1)
        x, y = torch.empty(32, 64, device=device), torch.empty(32, 8, device=device)

        def step(k):
            for tensor, new in zip((x, y), data(k)):
                tensor.copy_(new[32 * rank:32 * (rank + 1)])

        def body():
            optimizer.zero_grad(set_to_none=True)
            loss = torch.nn.functional.mse_loss(wrapped(x), y)
            loss.backward()
            optimizer.step()
            return loss

        step(0)
        for _ in range(11):  # as many as DDP wants before a capture
            body()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    dist.barrier()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = body()
    for k in range(STEPS):
        step(k)
        graph.replay()
    torch.cuda.synchronize()
    weights = torch.cat([p.detach().flatten() for p in wrapped.parameters()])
    every = [torch.empty_like(weights) for _ in range(world)]
    dist.all_gather(every, weights)
    torch.cuda.synchronize()
    assert all(torch.equal(e, weights) for e in every), "ranks have different weights"
    return "loss %.6f" % loss.item()


check("DDP", ddp)
check("DDP twice, bit by bit", ddp_twice)
check("DDP, gradients as bf16", ddp_bf16)
check("FSDP", fsdp)
check("DDP in a CUDA graph", graphed)
torch.cuda.synchronize()
if not failed:
    check("destroy_process_group", dist.destroy_process_group)
finish()
