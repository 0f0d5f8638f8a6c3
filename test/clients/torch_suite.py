# PyTorch's own tests of its collectives, those that its wheel carries, over NCCL with 2 ranks: a line for each, so that
# two libraries can be compared with diff.
#
# Needs: PyTorch with CUDA, the module expecttest, 2 GPUs or more; about ten seconds a test.
# Run:   LD_PRELOAD=.../libnccl.so.2 python torch_suite.py [--match PATTERN] [--workers N] [--seconds S]
#            --match    of names (what runs on GPUs, not DDP)             --workers   tests side by side (2)
#            --seconds  after which no further test begins (500)
# Exit:  0 all right, 1 not, 77 not to be tried here.
import argparse
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

os.environ.setdefault("BACKEND", "nccl")
os.environ.setdefault("WORLD_SIZE", "2")
os.environ.setdefault("INIT_METHOD", "env://")
os.environ.setdefault("DISTRIBUTED_TESTS_DEFAULT_TIMEOUT", "50")
if "TEMP_DIR" not in os.environ:
    os.environ["TEMP_DIR"] = tempfile.mkdtemp()
for folder in ("barrier", "test_dir", "init_dir"):
    os.makedirs(os.path.join(os.environ["TEMP_DIR"], folder), exist_ok=True)
try:
    import torch
    from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend
except ImportError as problem:
    print("skipped:", problem)
    sys.exit(77)
torch.backends.cuda.matmul.allow_tf32 = False


class TestSuite(TestDistBackend, DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        self._spawn_processes()


def one(name):
    """In a process of its own, which is the parent of the ranks."""
    result = unittest.TestResult()
    TestSuite(name).run(result)
    for _, text in result.failures + result.errors:
        print(text[-1500:])
        sys.exit(1)
    sys.exit(77 if result.skipped else 0)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Work:
    def __init__(self, names, until):
        self.names, self.until, self.lock, self.answers = list(names), until, threading.Lock(), {}

    def take(self):
        with self.lock:
            return self.names.pop(0) if self.names and time.monotonic() < self.until else None

    def run(self):
        while (name := self.take()) is not None:
            began = time.monotonic()
            with tempfile.TemporaryDirectory() as folder:
                process = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--one", name],
                                           env=dict(os.environ, TEMP_DIR=folder, MASTER_ADDR="127.0.0.1",
                                                    MASTER_PORT=str(free_port())), start_new_session=True,
                                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                try:
                    text = process.communicate(timeout=90)[0]
                    answer = {0: "pass", 77: "skip"}.get(process.returncode, "FAIL")
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, 9)
                    text, answer = process.communicate()[0], "HUNG"
            with self.lock:
                self.answers[name] = answer
                print("%-4s %s %.0f s" % (answer, name, time.monotonic() - began), flush=True)
                if answer in ("FAIL", "HUNG"):
                    print("    | " + text[-2500:].replace("\n", "\n    | "), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--one")
    parser.add_argument("--match", default="cuda|nccl|new_subgroups|object|coalescing_manager")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=500)
    given = parser.parse_args()
    if given.one:
        one(given.one)
    if torch.cuda.device_count() < 2:
        print("skipped: %d GPUs" % torch.cuda.device_count())
        sys.exit(77)
    names = [n for n in unittest.TestLoader().getTestCaseNames(TestSuite) if re.search(given.match, n)]
    if "ddp" not in given.match.lower():
        names = [n for n in names if not re.search("ddp|DistributedDataParallel", n)]
    work = Work(names, time.monotonic() + given.seconds)
    workers = [threading.Thread(target=work.run) for _ in range(given.workers)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    counts = {kind: sorted(n for n, a in work.answers.items() if a == kind) for kind in ("pass", "skip", "FAIL", "HUNG")}
    print("passed %d, skipped %d, not run %d" % (len(counts["pass"]), len(counts["skip"]),
                                                len(names) - len(work.answers)))
    for kind in ("FAIL", "HUNG"):
        print("%s: %d %s" % (kind, len(counts[kind]), " ".join(counts[kind])))
    sys.exit(1 if counts["FAIL"] or counts["HUNG"] else 0)


if __name__ == "__main__":
    main()
