"""Looks at the dumps that test/monitor/dump.c has had made, against what it ordered: dump.py WHAT PATH."""
import decimal
import importlib.util
import json
import pickle
import pickletools
import re
import subprocess
import sys


def no_twice(pairs):
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), f"a member is there twice: {names}"
    return dict(pairs)


def strict(path):
    def refuse(word):
        raise ValueError(f"{word} is not JSON")

    with open(path, "rb") as f:
        return json.loads(f.read().decode("ascii"), object_pairs_hook=no_twice, parse_constant=refuse, parse_float=decimal.Decimal)


def call_of(dump, call, track=None):
    found = [c for c in dump["calls"] if c["call"] == call and (track is None or c["number"] == track)]
    assert len(found) == 1, f"{call} is there {len(found)} times"
    return found[0]


def look_json(folder, dead=False):
    for rank in range(4):
        dump = strict(f"{folder}/rondo_dump_{rank}.json")
        assert dump["format"] == "rondo-dump" and dump["version"] == 1 and dump["lost_calls"] == 0
        assert dump["process"]["number"] == rank
        (comm,) = dump["communicators"]
        assert (comm["name"], comm["rank"], comm["size"], comm["device"]) == ('dump "test"', rank, 4, -1)
        first = call_of(dump, "allreduce", 1)
        want = dict(calls=100, over=100, state="completed", count=8, bytes=32, type="float32", op="sum", result=0)
        assert {k: first[k] for k in want} == want, first
        assert 0 < comm["made_ns"] < first["begun_ns"] <= first["ended_ns"] < dump["process"]["now_ns"]
        cast = call_of(dump, "broadcast")
        want = dict(number=101, calls=1, over=1, state="completed", count=100, bytes=400, type="int32", root=2)
        assert {k: cast[k] for k in want} == want and "op" not in cast, cast
        assert first["ended_ns"] <= cast["begun_ns"]
        messages = [c for c in dump["calls"] if c["call"] in ("send", "recv")]
        want = {0: [("send", 1, 24, 1), ("send", 2, 24, 2)], 3: []}.get(rank, [("recv", 0, 24, 1)])
        assert [(m["call"], m["peer"], m["bytes"], m["number"]) for m in messages] == want, messages
        assert all(m["state"] == "completed" and m.get("grouped", False) == (rank == 0) for m in messages)
        last = [c for c in dump["calls"] if c["number"] == 102]
        assert (comm["id"], rank) == (first["communicator"], first["rank"])
        begun = [board["collectives"]["begun"] for board in comm["boards"]]
        assert begun == ([101, 101] if rank == 1 else [102, 102]), begun
        if dead:
            assert dump["process"]["state"] == ("x" if rank == 3 else dump["process"]["state"])
            assert comm["verdict"]["status"] == 4 and comm["verdict"]["rank"] == 3, comm["verdict"]
            assert (len(last), rank) in ((0, 1), (1, rank))
            continue
        assert comm["verdict"]["status"] == 3 and comm["verdict"]["rank"] == 1, comm["verdict"]
        assert "late, by 1 call" in comm["verdict"]["text"]
        if rank == 1:
            assert not last
            continue
        (last,) = last
        want = dict(call="allreduce", calls=1, over=0, state="started", count=1000, bytes=8000, type="float64", op="max")
        assert {k: last[k] for k in want} == want and "ended_ns" not in last, last
        waits = comm["boards"][-1]["wait"]
        assert waits["for"] == last["waits_for"] and waits["for"] in range(4), waits
    assert "x" in dump["process"]["state"] if dead else True


def look_chrome(path):
    trace = strict(path)
    assert trace["displayTimeUnit"] == "ns" and int(trace["otherData"]["begin_unix_ns"]) > 10**18
    assert trace["otherData"]["calls_without_times"] == "0"
    events = trace["traceEvents"]
    assert {e["ph"] for e in events} == set("MXsfi"), "other kinds of events"
    tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {p for p, _ in tracks} == {0, 1, 2, 3}
    slices = [e for e in events if e["ph"] == "X"]
    for e in slices:
        assert (e["pid"], e["tid"]) in tracks and e["ts"] >= 0 and e["dur"] >= 0, e
    for track in tracks:
        ends = []
        for e in sorted((e for e in slices if (e["pid"], e["tid"]) == track), key=lambda e: (e["ts"], -e["dur"])):
            while ends and ends[-1] <= e["ts"]:
                ends.pop()
            assert not ends or e["ts"] + e["dur"] <= ends[-1], f"slices of {tracks[track]} overlap"
            ends.append(e["ts"] + e["dur"])
    calls = lambda pid: [(e["name"], e["args"]["number"], e["args"]["state"]) for e in slices
                         if e["pid"] == pid and "number" in e["args"]]
    for pid in range(4):
        want = [("allreduce", 1, "completed"), ("99 more allreduce", 2, "completed"), ("broadcast", 101, "completed")]
        want += {0: [("send", 1, "completed"), ("send", 2, "completed")], 3: []}.get(pid, [("recv", 1, "completed")])
        want += [] if pid == 1 else [("allreduce", 102, "started")]
        assert calls(pid) == want, calls(pid)
    # The clocks go together: rank 2 was ordered to broadcast when all had reduced.
    broadcast = [e for e in slices if e["name"] == "broadcast"]
    last = [e for e in slices if e["args"].get("number") == 102]
    assert len(broadcast) == 4 and len(last) == 3
    assert max(e["ts"] + e["dur"] for e in broadcast) <= min(e["ts"] for e in last)
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    arrows = [e for e in events if e["ph"] in "sf"]
    assert len(starts) == 3 and starts.keys() == ends.keys() and len(arrows) == 6, "arrows do not join"
    for e in arrows:
        there = [s for s in slices if (s["pid"], s["tid"]) == (e["pid"], e["tid"]) and s["ts"] <= e["ts"] <= s["ts"] + s["dur"]]
        assert there, f"an arrow at no slice: {e}"
        assert e["ph"] == "s" or (e["bp"] == "e" and any(s["name"].startswith("waited for by rank") for s in there))
    assert sorted(starts[i]["pid"] for i in starts) == [0, 2, 3]
    assert all(starts[i]["pid"] != ends[i]["pid"] for i in starts)
    (verdict,) = [e for e in events if e["ph"] == "i"]
    assert verdict["pid"] == 1 and "is late" in verdict["args"]["text"]


PLAIN = """PROTO STOP MARK NONE NEWTRUE NEWFALSE BININT BININT1 LONG1 BINFLOAT BINUNICODE EMPTY_DICT SETITEMS EMPTY_LIST
APPENDS TUPLE1 TUPLE2 TUPLE3 EMPTY_TUPLE""".split()


def unpickle(path):
    with open(path, "rb") as f:
        data = f.read()
    used = {op.name for op, _, _ in pickletools.genops(data)}
    assert used <= set(PLAIN), f"opcodes that may make objects: {used - set(PLAIN)}"
    assert data[:2] == b"\x80\x02"
    return pickle.loads(data)


def look_fr(folder):
    dumps = [unpickle(f"{folder}/rondo_trace_{rank}") for rank in range(4)]
    for rank, dump in enumerate(dumps):
        assert dump["version"] == "2.10" and dump["entries"][0]["record_id"] == 0
        assert [e["record_id"] for e in dump["entries"]] == list(range(len(dump["entries"])))
        groups = dump["pg_config"]
        (world,) = [g for g in groups if ":" not in g]
        assert groups[world] == {"desc": 'dump "test"', "ranks": "[0, 1, 2, 3]"}
        peers = {0: [1, 2], 1: [0], 2: [0], 3: []}[rank]
        assert sorted(groups) == sorted([world] + [f"{world}:{min(rank, p)}:{max(rank, p)}" for p in peers]), groups
        assert all(groups[f"{world}:0:{p}"]["ranks"] == f"[0, {p}]" for p in peers if rank == 0)
        calls = [e for e in dump["entries"] if e["process_group"] == (world, 'dump "test"')]
        messages = [e for e in dump["entries"] if e not in calls]
        # The begin and the end of a run of 100, then what was called once.
        numbers = [e["collective_seq_id"] for e in calls]
        assert numbers == [*range(1, 17), *range(85, 102)] + ([] if rank == 1 else [102]), numbers
        assert all(e["profiling_name"] == "nccl:all_reduce" and e["input_sizes"] == [[8]] and not e["is_p2p"]
                   and e["state"] == "completed" and e["output_dtypes"] == ["Float"] for e in calls[:32])
        assert calls[0]["time_created_ns"] > 10**18 and calls[1]["time_created_ns"] is None
        assert calls[32]["profiling_name"] == "nccl:broadcast" and calls[32]["output_sizes"] == [[100]]
        assert calls[32]["rondo"]["root"] == 2 and calls[32]["input_dtypes"] == ["Int"]
        assert 0 <= calls[32]["duration_ms"] < 10**6
        if rank != 1:
            assert calls[33]["state"] == "started" and calls[33]["rondo"]["op"] == "max"
            assert calls[33]["time_discovered_completed_ns"] is None and not calls[33]["retired"]
        name = "nccl:send 0->1" if rank == 0 else "nccl:recv 1<-0"
        side, other = ("input_sizes", "output_sizes") if rank == 0 else ("output_sizes", "input_sizes")
        assert len(messages) == len(peers)
        for e in messages:
            assert e["profiling_name"] == name and e["is_p2p"] and e[side] == [[24]] and e[other] == [[0]], e
            assert e["collective_seq_id"] == e["p2p_seq_id"] == 2
        state = dump["nccl_comm_state"][world]
        assert "rank 1" in state["verdict"] and all(isinstance(v, str) for v in state.values())
    look_by_torch(folder)


def look_by_torch(folder):
    """PyTorch's own analyser, where there is one (2.10 and later), has to name the rank, and to list every entry."""
    module = "torch.distributed.flight_recorder.fr_trace"
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, OSError):
        found = None
    if not found:
        print("PyTorch's analyser is not here: it is not asked")
        return
    run = [sys.executable, "-m", module, folder]
    said = subprocess.run(run, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    assert said.count("has errors") + said.count("Not all ranks joining") == 1, said
    assert "Not all ranks joining collective, sequence number: 102" in said and "missing ranks: {1}" in said, said
    if "tabulate is not installed" not in said:
        subprocess.run(run + ["-j"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def look_running(folder):
    dumps = [unpickle(f"{folder}/rondo_trace_{rank}")["entries"] for rank in range(4)]
    assert all(e["state"] == "completed" for entries in dumps for e in entries)
    calls = [[(e["collective_seq_id"], e["input_sizes"]) for e in entries if not e["is_p2p"]] for entries in dumps]
    assert len(calls[0]) > 16 and all(c == calls[0] for c in calls), "ranks have not written out the same calls"
    messages = [[e["collective_seq_id"] for e in entries if e["is_p2p"]] for entries in dumps]
    assert messages[0] == messages[1] and not messages[2] and not messages[3], "a message has one side"
    assert len(messages[0]) > 16


NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'


def parse_metrics(text):
    """Prometheus' text format, strictly: each family has help and type before its samples, and is in one piece."""
    assert text.endswith("\n")
    families, samples, family = {}, {}, None
    for line in text.split("\n")[:-1]:
        if line.startswith("# HELP "):
            family = line.split(" ")[2]
            assert re.fullmatch(NAME, family) and family not in families, f"twice: {line}"
            families[family] = None
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == family and families[name] is None and kind in ("counter", "gauge", "histogram"), line
            assert (kind == "counter") == name.endswith("_total")
            families[name] = kind
        else:
            found = re.fullmatch(f"({NAME})(?:{{({LABEL}(?:,{LABEL})*)}})? ([0-9]+(?:\\.[0-9]+)?)", line)
            assert found and families[family], line
            parts = [family + end for end in ("_bucket", "_sum", "_count")]
            assert found[1] in (parts if families[family] == "histogram" else [family]), line
            labels = re.findall(LABEL, found[2] or "")
            key = (found[1], tuple(sorted(labels)))
            assert len(dict(labels)) == len(labels) and key not in samples, f"twice: {line}"
            samples[key] = float(found[found.lastindex])
    return samples


def look_metrics(path):
    with open(path) as f:
        samples = parse_metrics(f.read())

    def of(name, **labels):
        return [v for (n, l), v in sorted(samples.items()) if n == name and labels.items() <= dict(l).items()]

    assert of("rondo_processes") == [4] and of("rondo_up") == [1, 1, 1, 1]
    for rank in range(4):
        assert of("rondo_calls_total", kind="collective", rank=str(rank)) == [101 if rank == 1 else 102]
        assert of("rondo_calls_ended_total", kind="collective", rank=str(rank)) == [101]
        assert of("rondo_calls_total", kind="send", rank=str(rank)) == [2 if rank == 0 else 0]
        assert of("rondo_calls_total", kind="recv", rank=str(rank)) == [1 if rank in (1, 2) else 0]
        total = 100 * 32 + 400 + {0: 48, 3: 0}.get(rank, 24) + (0 if rank == 1 else 8000)
        assert of("rondo_bytes_total", rank=str(rank)) == [total], (rank, of("rondo_bytes_total", rank=str(rank)), total)
        assert (of("rondo_wait_seconds", rank=str(rank))[0] > 0) == (rank != 1)
    assert of("rondo_verdict", communicator='dump \\"test\\"') == [3] and of("rondo_blamed_rank") == [1]


def look_own_metrics(path):
    """Of a process whose rank has called three allreduces and a broadcast, and a fourth one, unless it is rank 2."""
    with open(path) as f:
        samples = parse_metrics(f.read())

    def of(name, **labels):
        return [v for (n, l), v in sorted(samples.items()) if n == name and labels.items() <= dict(l).items()]

    assert len(samples) <= 200, len(samples)
    (rank,) = {dict(l)["rank"] for (n, l) in samples if n == "rondo_bytes_total"}
    waits = rank != "2"
    assert of("rondo_up") == [1] and of("rondo_communicators") == [1] and of("rondo_calls_untimed_total") == [0]
    assert of("rondo_calls_total", kind="collective", communicator='metrics \\"job\\"') == [4 + waits]
    assert of("rondo_calls_ended_total", kind="collective") == [4] and of("rondo_calls_total", kind="send") == [0]
    assert of("rondo_bytes_total") == [3 * 32 + 400 + 32 * waits]
    assert (of("rondo_wait_seconds")[0] > 0.3) == waits
    assert not waits or of("rondo_wait_seconds_total")[0] >= 0.3
    peers = {dict(l)["peer"]: v for (n, l), v in samples.items() if n == "rondo_peer_wait_seconds_total"}
    assert sum(peers.values()) <= of("rondo_wait_seconds_total")[0] + 0.002 and rank not in peers
    assert not waits or max(peers.values()) > 0.2
    assert of("rondo_late_rank") in ([], [2]) and (waits or not of("rondo_late_rank"))
    assert sum(of("rondo_stalls_total", kind="late")) >= len(of("rondo_late_rank"))
    assert of("rondo_stalls_total", kind="blamed") == [0]
    # Of each run the first call: one of the allreduces, the broadcast; the one that goes on has no time yet.
    assert of("rondo_call_seconds_count", collective="allreduce") == [1]
    assert of("rondo_call_seconds_count", collective="broadcast") == [1]
    for collective in ("allreduce", "broadcast"):
        buckets = [(float(dict(l)["le"]), v) for (n, l), v in samples.items() if n == "rondo_call_seconds_bucket" and dict(l)["collective"] == collective]
        counts = [v for _, v in sorted(buckets)]
        assert len(counts) == 7 and counts == sorted(counts) and counts[-1] == 1
        total = of("rondo_call_seconds_sum", collective=collective)[0]
        assert min(bound for bound, v in buckets if v) >= total > 0


def look_from_fr(folder):
    """What a flight recorder's dump has, as rondo's own: it knows of no waits."""
    for rank in range(4):
        dump = strict(f"{folder}/rondo_dump_{rank}.json")
        assert dump["process"]["number"] == rank and dump["process"]["state"] == "?"
        world = [c for c in dump["communicators"] if c["size"] == 4]
        assert [(c["name"], c["rank"]) for c in world] == [('dump "test"', rank)]
        calls = [c for c in dump["calls"] if c["communicator"] == world[0]["id"]]
        numbers = [*range(1, 17), *range(85, 102)] + ([] if rank == 1 else [102])
        assert [c["number"] for c in calls] == numbers
        assert all(c["calls"] == 1 and c["over"] == (c["number"] < 102) for c in calls)
        assert (calls[0]["call"], calls[0]["count"], calls[0]["type"], calls[0]["op"]) == ("allreduce", 8, "float32", "sum")
        assert calls[0]["begun_ns"] > 10**18 and "begun_ns" not in calls[1]
        assert (calls[32]["call"], calls[32]["root"], calls[32]["bytes"]) == ("broadcast", 2, 400)
        messages = [(c["call"], c["number"], c["bytes"]) for c in dump["calls"] if c not in calls]
        assert messages == {0: 2 * [("send", 1, 24)], 3: []}.get(rank, [("recv", 1, 24)]), messages


if __name__ == "__main__":
    what, path = sys.argv[1:]
    {"json": look_json, "chrome": look_chrome, "fr": look_fr, "from_fr": look_from_fr, "running": look_running, "metrics": look_metrics, "own_metrics": look_own_metrics, "dead": lambda p: look_json(p, dead=True)}[what](path)
