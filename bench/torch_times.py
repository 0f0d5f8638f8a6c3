# What PyTorch's all_reduce takes from 1 KB to 1 GB, and a step of a DDP model, under the libnccl.so.2 that is loaded:
# bench/torch.sh starts it under two libraries in turns.
#
# Run:   LD_PRELOAD=.../libnccl.so.2 torchrun --nproc-per-node=2 torch_times.py [all_reduce] [ddp]
# Lines: "all_reduce BYTES graph|stream US", "ddp PARAMETERS step|alone US": of the slowest rank, a call's or a step's;
#        alone: the same step without communication
import datetime
import os
import sys

import torch
import torch.distributed as dist

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group("nccl", device_id=device, timeout=datetime.timedelta(seconds=60))


def slowest(us):
    time = torch.tensor([us], dtype=torch.float64, device=device)
    dist.all_reduce(time, dist.ReduceOp.MAX)
    return time.item()


def took(call, times):
    """Microseconds of one of `times` calls, one after the other in the current stream."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for _ in range(3):
        call()
    dist.barrier()
    begin.record()
    for _ in range(times):
        call()
    end.record()
    end.synchronize()
    return slowest(begin.elapsed_time(end) * 1000 / times)


def captured(call, times):
    graph = torch.cuda.CUDAGraph()
    call()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(times):
            call()
    return graph.replay


def all_reduce():
    for power in range(10, 31, 2):
        x = torch.zeros((1 << power) // 4, device=device)
        calls = 20 if power < 24 else 5
        graph = captured(lambda: dist.all_reduce(x), calls)
        stream = took(lambda: dist.all_reduce(x), 20 * calls // 5)
        replay = took(graph, 5) / calls
        if rank == 0:
            print("all_reduce %d stream %.2f" % (1 << power, stream), flush=True)
            print("all_reduce %d graph %.2f" % (1 << power, replay), flush=True)
        torch.cuda.synchronize()
        dist.barrier()
        del graph, x


def ddp(width, layers):
    torch.manual_seed(1)
    model = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(layers)]).to(device)
    wrapped = torch.nn.parallel.DistributedDataParallel(model, device_ids=[device])
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=1e-4)
    x = torch.randn(256, width, device=device)

    def step():
        optimizer.zero_grad()
        wrapped(x).square().mean().backward()
        optimizer.step()

    us = took(step, 20)
    with wrapped.no_sync():
        alone = took(step, 20)
    if rank == 0:
        size = sum(p.numel() for p in model.parameters())
        print("ddp %d step %.1f" % (size, us), flush=True)
        print("ddp %d alone %.1f" % (size, alone), flush=True)


wanted = sys.argv[1:] or ["all_reduce", "ddp"]
if "all_reduce" in wanted:
    all_reduce()
if "ddp" in wanted:
    for width, layers in (256, 4), (2048, 8), (4096, 16):
        ddp(width, layers)
dist.destroy_process_group()
