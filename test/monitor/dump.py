"""Looks at the dumps that test/monitor/dump.c has had made, against what it ordered: dump.py WHAT PATH."""
import json
import sys


def no_twice(pairs):
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), f"a member is there twice: {names}"
    return dict(pairs)


def strict(path):
    def refuse(word):
        raise ValueError(f"{word} is not JSON")

    with open(path, "rb") as f:
        return json.loads(f.read().decode("ascii"), object_pairs_hook=no_twice, parse_constant=refuse)


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
        want = dict(calls=5, over=5, state="completed", count=8, bytes=32, type="float32", op="sum", result=0)
        assert {k: first[k] for k in want} == want, first
        assert 0 < comm["made_ns"] < first["begun_ns"] <= first["ended_ns"] < dump["process"]["now_ns"]
        cast = call_of(dump, "broadcast")
        want = dict(number=6, calls=1, over=1, state="completed", count=100, bytes=400, type="int32", root=2)
        assert {k: cast[k] for k in want} == want and "op" not in cast, cast
        assert first["ended_ns"] <= cast["begun_ns"]
        messages = [c for c in dump["calls"] if c["call"] in ("send", "recv")]
        want = {0: [("send", 1, 24, 1)], 1: [("recv", 0, 24, 1)]}.get(rank, [])
        assert [(m["call"], m["peer"], m["bytes"], m["number"]) for m in messages] == want, messages
        assert all(m["state"] == "completed" for m in messages)
        last = [c for c in dump["calls"] if c["number"] == 7]
        assert (comm["id"], rank) == (first["communicator"], first["rank"])
        begun = [board["collectives"]["begun"] for board in comm["boards"]]
        assert begun == ([6, 6] if rank == 1 else [7, 7]), begun
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


if __name__ == "__main__":
    what, path = sys.argv[1:]
    {"json": look_json, "dead": lambda p: look_json(p, dead=True)}[what](path)
