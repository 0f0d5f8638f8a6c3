# What PyTorch does when ranks are late, leave or die: its timeouts, its watchdog, abort, and life afterwards. The script
# starts its ranks itself, anew for each case, because some of them must not survive it.
#
# Needs: PyTorch with CUDA, 2 GPUs or more.
# Run:   LD_PRELOAD=.../libnccl.so.2 python torch_trouble.py [CASE...]
# Exit:  0 all right, 1 not, 77 not to be tried here.
import datetime
import os
import signal
import socket
import subprocess
import sys
import time

from checks import check, finish, rank, say, served_by, skip

CASES = {  # name: environment, what ranks 0 and 1 must end with
    "abort": ({"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}, (0, 0)),
    "shrink": ({}, (0, 0)),
    "late": ({"TORCH_NCCL_BLOCKING_WAIT": "1"}, (0, 0)),
    "dead": ({"TORCH_NCCL_BLOCKING_WAIT": "1"}, (0, -signal.SIGKILL)),
    # It ends the process after four times as long as it leaves for the dump, 15 s otherwise.
    "watchdog": ({"TORCH_NCCL_ASYNC_ERROR_HANDLING": "1", "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC": "500"},
                 (-signal.SIGABRT, 0)),
    "nonblocking-abort": ({"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0", "TORCH_NCCL_USE_COMM_NONBLOCKING": "1"}, (0, 0)),
}


def body(case):
    import torch
    import torch.distributed as dist
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    seconds = 5 if case in ("late", "dead", "watchdog") else 30
    dist.init_process_group("nccl", rank=rank, world_size=2, device_id=device,
                            timeout=datetime.timedelta(seconds=seconds))
    if rank == 0:
        served_by()
    x = torch.ones(1000, device=device)
    dist.all_reduce(x)
    torch.cuda.synchronize()
    assert x[0].item() == 2
    began = time.monotonic()
    if case == "shrink":
        if not hasattr(dist, "shrink_group"):
            say("this PyTorch has no shrink_group")
            return
        if rank == 0:
            dist.shrink_group([1])
            x = torch.ones(10, device=device)
            dist.all_reduce(x)
            torch.cuda.synchronize()
            assert x[0].item() == 1 and dist.get_world_size() == 1
        else:
            time.sleep(3)
        return
    if case.endswith("abort"):
        if rank == 0:  # a kernel that waits for a rank that does not come
            work = dist.all_reduce(x, async_op=True)
            time.sleep(0.5)
            assert not work.is_completed()
        else:
            time.sleep(0.5)
        dist.distributed_c10d._abort_process_group()
        torch.cuda.synchronize()
        say("aborted after %.1f s" % (time.monotonic() - began))
        os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + 1)
        dist.init_process_group("nccl", rank=rank, world_size=2, device_id=device)
        x = torch.ones(1000, device=device)
        dist.all_reduce(x)
        torch.cuda.synchronize()
        assert x[0].item() == 2
        dist.destroy_process_group()
        return
    if rank == 1 and case == "dead":
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == 1:  # late
        time.sleep(20)
        os._exit(0)
    try:
        work = dist.all_reduce(x, async_op=True)
        work.wait()
        torch.cuda.synchronize()
        time.sleep(20)  # the watchdog ends this process
    except Exception as problem:
        say("after %.1f s: %s: %s" % (time.monotonic() - began, type(problem).__name__, str(problem)[:300]))
        assert time.monotonic() - began < 9, "too late"
        sys.stdout.flush()
        os._exit(0)
    say("nothing came of it")
    os._exit(3)


def run(case):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    environment, want = CASES[case]
    ranks = []
    for r in range(2):
        own = dict(os.environ, RANK=str(r), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                   TROUBLE=case, **environment)
        ranks.append(subprocess.Popen([sys.executable, os.path.abspath(__file__)], env=own))
    got = []
    for process in ranks:
        try:
            got.append(process.wait(timeout=40))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            got.append("hung")
    assert tuple(got) == want, "ended with %s, wanted %s" % (got, want)


if "TROUBLE" in os.environ:
    body(os.environ["TROUBLE"])
    sys.exit(0)
try:
    import torch
except ImportError as problem:
    skip(problem)
if torch.cuda.device_count() < 2:
    skip("%d GPUs" % torch.cuda.device_count())
for name in sys.argv[1:] or CASES:
    check(name, run, name)
finish()
