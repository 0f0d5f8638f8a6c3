"""Dumps of jobs that never were, with one thing wrong in each, or none: rondo-ras analyse must name it, and the rank, and
nobody else. Rings have lost different numbers of calls. Seeds are printed; RONDO_TEST_SEED takes another one."""
import json
import os
import pickle
import random
import shutil
import subprocess
import sys
import tempfile

CASES = 150
COLLECTIVES = ["allreduce", "reduce", "broadcast", "allgather", "reduce_scatter", "alltoall", "gather", "scatter", "barrier"]
REDUCES = ["allreduce", "reduce", "reduce_scatter"]
ROOTED = ["reduce", "broadcast", "gather", "scatter"]
BLOCKS = ["allgather", "reduce_scatter", "alltoall", "gather", "scatter"]
SIZES = {"float32": 4, "int64": 8, "bfloat16": 2}
FR_TYPES = {"float32": "Float", "int64": "Long", "bfloat16": "BFloat16"}
FR_NAMES = {"allreduce": "all_reduce", "allgather": "_all_gather_base", "reduce_scatter": "_reduce_scatter_base",
            "alltoall": "all_to_all", "barrier": "all_reduce_barrier"}
FAULTS = {"json": ["none", "late", "kind", "count", "type", "op", "root", "tag", "inside"],
          "fr": ["none", "late", "kind", "count", "type", "inside"]}


def random_call(rng, kinds=COLLECTIVES):
    return dict(kind=rng.choice(kinds), type=rng.choice(list(SIZES)), count=rng.randint(1, 50), op="sum", root=0)


def planted(rng, call, fault):
    bad = dict(call)
    if fault == "kind":
        bad["kind"] = rng.choice([k for k in COLLECTIVES if k != call["kind"]])
    elif fault == "count":
        bad["count"] += rng.randint(1, 9)
    elif fault == "type":
        bad["type"] = rng.choice([t for t in SIZES if t != call["type"]])
    elif fault == "op":
        bad["op"] = "max"
    elif fault == "root":
        bad["root"] = 1
    elif fault == "tag":
        bad["tag"] = rng.choice([1, 2**64 - 1])
    return bad


class Job:
    """Each rank has made `calls[rank]`, a list of (call, how often), of which it still has those from `kept[rank]` on."""

    def __init__(self, rng, fault):
        self.size, self.fault = rng.randint(3, 6), fault
        common = [(random_call(rng), rng.choice([1, 1, 2, 40, 5000])) for _ in range(rng.randint(1, 12))]
        kinds = {"op": REDUCES, "type": REDUCES, "root": ROOTED, "count": [k for k in COLLECTIVES if k not in ("barrier", "alltoall")]}
        last = random_call(rng, kinds.get(fault, COLLECTIVES))
        while last == common[-1][0]:
            last["count"] += 1
        self.culprit = rng.randrange(self.size)
        self.calls = [list(common) for _ in range(self.size)]
        self.over = [sum(n for _, n in common)] * self.size
        for rank in range(self.size):
            if fault == "none":
                continue
            if rank == self.culprit and fault == "late":
                continue
            self.calls[rank].append((planted(rng, last, fault) if rank == self.culprit else last, 1))
        self.number = sum(n for _, n in common) + 1
        self.kept = [rng.randint(0, len(common) - 1) for _ in range(self.size)]

    def runs(self, rank):
        number = 1
        for i, (call, n) in enumerate(self.calls[rank]):
            if i >= self.kept[rank]:
                yield i, number, n, call
            number += n

    def bytes(self, call):
        return call["count"] * SIZES[call["type"]] * (self.size if call["kind"] in BLOCKS else 1)

    def write_json(self, folder):
        for rank in range(self.size):
            calls = []
            for index, number, n, call in self.runs(rank):
                one = {"index": index, "communicator": "00000000000000aa", "rank": rank, "call": call["kind"], "number": number,
                       "calls": n, "begun_ns": 10**9 + number, "thread": 1}
                if call["kind"] != "barrier":
                    one.update(count=call["count"], bytes=self.bytes(call), type=call["type"])
                if call["kind"] in REDUCES:
                    one["op"] = call["op"]
                if call["kind"] in ROOTED:
                    one["root"] = call["root"]
                if "tag" in call:
                    one["tag"] = call["tag"]
                if "output" in call:
                    one["output_hash"] = call["output"]
                calls.append(one)
            begun = sum(n for _, n in self.calls[rank])
            none = {"begun": 0, "ended": 0, "entry": 0, "bytes": 0}
            board = {"state": "alive", "collectives": {"begun": begun, "ended": self.over[rank], "entry": len(self.calls[rank]),
                                                       "bytes": 0}, "sends": none, "recvs": none}
            comm = {"id": "00000000000000aa", "name": "world", "rank": rank, "size": self.size, "nodes": 1, "device": -1,
                    "entry": 0, "boards": [board]}
            dump = {"format": "rondo-dump", "version": 1,
                    "process": {"pid": 100 + rank, "job_rank": rank, "state": "?", "host": "n1", "now_ns": 2 * 10**9},
                    "communicators": [comm], "lost_calls": self.kept[rank], "calls": calls}
            with open(f"{folder}/rondo_dump_{rank}.json", "w") as f:
                json.dump(dump, f)

    def sizes(self, call, rank):
        block, all_of_it = [[call["count"]]], [[call["count"] * self.size]]
        kind, at_root = call["kind"], rank == call["root"]
        if kind == "barrier":
            return [[1]], [[1]]
        into = all_of_it if kind in ("reduce_scatter", "alltoall") or (kind == "scatter" and at_root) else block
        out = all_of_it if kind in ("allgather", "alltoall") or (kind == "gather" and at_root) else block
        return into, out

    def write_fr(self, folder):
        """As PyTorch does: every call on its own, so of a run no more than a ring would have."""
        for rank in range(self.size):
            entries = []
            for _, number, n, call in self.runs(rank):
                for k in range(max(0, n - 50), n):
                    into, out = self.sizes(call, rank)
                    over = number + k <= self.over[rank]
                    entries.append({
                        "record_id": len(entries), "pg_id": 0, "process_group": ("0", "default_pg"), "is_p2p": False,
                        "collective_seq_id": number + k, "p2p_seq_id": 0, "op_id": number + k,
                        "profiling_name": "nccl:" + FR_NAMES.get(call["kind"], call["kind"]),
                        "time_created_ns": 1700000000000000000 + number + k, "input_sizes": into, "output_sizes": out,
                        "input_dtypes": [FR_TYPES[call["type"]]], "output_dtypes": [FR_TYPES[call["type"]]],
                        "state": "completed" if over else ("scheduled", "started")[rank % 2], "retired": over,
                        "time_discovered_started_ns": None, "time_discovered_completed_ns": None, "timeout_ms": 600000,
                        "frames": [{"name": "step", "filename": "train.py", "line": 7}]})
            ranks = str(list(range(self.size)))
            dump = {"version": "2.10", "comm_lib_version": "2.27.3", "entries": entries, "pg_status": {},
                    "pg_config": {"0": {"name": "0", "desc": "default_pg", "uid": "0", "ranks": ranks}}, "nccl_comm_state": {}}
            with open(f"{folder}/comm_lib_trace_rank_{rank}", "wb") as f:
                pickle.dump(dump, f, protocol=2 + rank % 3)


class Crowd(Job):
    """Each rank has made one call."""

    def __init__(self, calls):
        self.size = len(calls)
        self.calls = [[(call, 1)] for call in calls]
        self.over = [1] * self.size
        self.kept = [0] * self.size


def run(tool, *arguments):
    done = subprocess.run([tool, *arguments], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def judge(job, status, text):
    name = f"rank {job.culprit} "
    if job.fault == "none":
        assert status == 0 and text.startswith("nothing is found")
    elif job.fault == "inside":
        assert status == 5 and "no rank is behind" in text and f"number {job.number}," in text
    elif job.fault == "late":
        assert status == 3 and f"{name}has not come to collective number {job.number}," in text
    else:
        field = {"kind": "operation"}.get(job.fault, job.fault)
        assert status == 4 and f"{name}calls" in text and f"number {job.number}." in text
        assert f"differ in {field}," in text or (field == "count" and "differ in bytes," in text)
    others = [r for r in range(job.size) if r != job.culprit and f"rank {r} calls" in text or f"rank {r} has" in text]
    assert job.fault in ("none", "inside") or not [r for r in others if r != job.culprit], f"also {others}"


def convert(tool, job, folder):
    """The numbers that are written out are those that all ranks still have, and each rank that has made one has it."""
    status, text = run(tool, "convert", "--format", "fr", folder, folder + ".fr")
    assert status == 0, text
    numbers = []
    for rank in range(job.size):
        with open(f"{folder}.fr/rondo_trace_{rank}", "rb") as f:
            entries = pickle.load(f)["entries"]
        numbers.append({e["collective_seq_id"] for e in entries})
        assert len(numbers[-1]) == len(entries), "a call is there twice"
    first = max(min([number for _, number, _, _ in job.runs(rank)], default=1) for rank in range(job.size))
    everything = set().union(*numbers)
    assert min(everything, default=first) >= first, f"begins at {min(everything)}, and not all have what is before {first}"
    for rank in range(job.size):
        begun = sum(n for _, n in job.calls[rank])
        assert numbers[rank] == {n for n in everything if n <= begun}, f"rank {rank} lacks {everything - numbers[rank]}"
        assert begun in numbers[rank] or begun < first, "the last call is not there"
    assert run(tool, "analyse", folder + ".fr")[0] == {"none": 0, "late": 3, "inside": 5}.get(job.fault, 4)


def crowds(tool, folder):
    """Of more ranks than a sentence has room for some are named, and it goes on to its end."""
    call = dict(kind="allreduce", type="float32", count=4, op="sum", root=0)
    evens, odds = (f"ranks {', '.join(str(r) for r in range(first, 24, 2))} and 438 more" for first in (0, 1))
    for calls, differ, got in [
            ([dict(call, op=("max", "sum")[r % 2], output=f"{r % 2 + 1:016x}") for r in range(900)],
             f". {odds} call allreduce (4 float32, sum); {evens} call allreduce (4 float32, max)\n", f"; {evens} got {1:016x}\n"),
            ([dict(call, count=1 + r, output=f"{r + 1:016x}") for r in range(300)],
             "; 295 more call something else; rank 0 calls allreduce (1 float32, sum)\n",
             f"; 295 more got something else; rank 0 got {1:016x}\n")]:
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        Crowd(calls).write_json(folder)
        status, text = run(tool, "analyse", folder)
        if status != 4 or differ not in text or not text.endswith(got):
            print(f"a crowd: exit {status}, and there is no '{differ}' or no '{got}': {text}")
            return 1
    return 0


def pairs(tool, folder, rng):
    """Each rank has sent to each other one and got from it, in an order of its own; one expects another length."""
    size, wrong = 12, rng.sample(range(12), 2)
    os.mkdir(folder)
    for rank in range(size):
        peers = [p for p in range(size) if p != rank] * 2
        rng.shuffle(peers)
        calls = []
        for n, peer in enumerate(peers):
            for kind in ("send", "recv"):
                odd = kind == "recv" and [rank, peer] == wrong and peer not in peers[n + 1:]
                calls.append({"index": len(calls), "communicator": "00000000000000aa", "rank": rank, "call": kind, "number": n + 1,
                              "calls": 1, "begun_ns": 10**9 + n, "ended_ns": 10**9 + n + 1, "thread": 1, "count": 16 + odd,
                              "bytes": 16 + odd, "peer": peer})
        done = {"begun": len(peers), "ended": len(peers), "entry": 0, "bytes": 0}
        board = {"state": "alive", "collectives": {"begun": 0, "ended": 0, "entry": 0, "bytes": 0}, "sends": done, "recvs": done}
        comm = {"id": "00000000000000aa", "name": "world", "rank": rank, "size": size, "nodes": 1, "device": -1, "entry": 0,
                "boards": [board]}
        dump = {"format": "rondo-dump", "version": 1, "process": {"pid": 100 + rank, "job_rank": rank, "state": "?", "host": "n1"},
                "communicators": [comm], "lost_calls": 0, "calls": calls}
        with open(f"{folder}/rondo_dump_{rank}.json", "w") as f:
            json.dump(dump, f)
    want = (f"'world': rank {wrong[1]} sends 16 bytes to rank {wrong[0]}, which expects 17, in message 2 from the one to the "
            "other\n")
    status, text = run(tool, "analyse", folder)
    if (status, text) != (4, want):
        print(f"pairs: exit {status}, want '{want}': {text}")
        return 1
    return 0


def main():
    tool = sys.argv[1]
    first = int(os.environ.get("RONDO_TEST_SEED", "1"))
    print(f"seeds from {first}")
    folder = tempfile.mkdtemp(prefix="rondo-analyse-")
    try:
        for seed in range(first, first + CASES):
            rng = random.Random(seed)
            form = ("json", "fr")[seed % 2]
            job = Job(rng, rng.choice(FAULTS[form]))
            dumps = f"{folder}/{seed}"
            os.mkdir(dumps)
            (job.write_json if form == "json" else job.write_fr)(dumps)
            status, text = run(tool, "analyse", dumps)
            try:
                judge(job, status, text)
                if form == "json":
                    convert(tool, job, dumps)
            except AssertionError as wrong:
                print(f"seed {seed}: {form}, {job.fault} at rank {job.culprit} of {job.size}, number {job.number}: {wrong}\n"
                      f"exit {status}: {text}")
                return 1
        print(f"{CASES} jobs")
        return crowds(tool, f"{folder}/crowd") or pairs(tool, f"{folder}/pairs", random.Random(first))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
