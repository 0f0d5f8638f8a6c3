#!/bin/sh
# rondo-info doctor --json: one document, by python's json module, with the fields that rondo-info(1) lists and the counts
# of what it has found, the same findings as in lines; what is planted is found as wrong, and texts with quotes and bytes
# that are no ASCII arrive. With --network it has the nodes and all ways between them.
set -u
info="$top_builddir/rondo-info"
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
unset RONDO_IFACE RONDO_NET RONDO_PORTS RONDO_UCX_TLS RONDO_HOSTID RONDO_SLOT_BYTES RONDO_DEBUG RONDO_DEBUG_FILE RONDO_TRANSPORT
cat >"$dir/look.py" <<'P'
import json, sys
name, status, want = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
d = json.load(open(name))
assert d["format"] == 1 and d["rondo"].count(".") == 2 and d["network"] in (True, False), d
keys = {"state", "area", "name", "what", "advice"}
for f in d["findings"]:
    assert set(f) == keys, f
    assert f["state"] in ("ok", "note", "wrong") and f["area"] in ("host", "network", "GPUs"), f
    assert all(isinstance(f[k], str) and f[k] for k in keys - {"advice"}), f
    assert f["advice"] is None or f["advice"], f
for state in ("ok", "note", "wrong"):
    assert d[state] == sum(f["state"] == state for f in d["findings"]), state
assert d["findings"] and status == (d["wrong"] > 0), (status, d)
if d["network"]:
    n = len(d["nodes"])
    assert d["ranks"] >= n and len(d["ways"]) == n * (n - 1), d
    for node in d["nodes"]:
        assert set(node) == {"rank", "name", "interface", "address", "mbit", "mtu", "library", "devices", "gpus"}, node
    assert {(w["from"], w["to"]) for w in d["ways"]} == {(a, b) for a in range(n) for b in range(n) if a != b}
    for w in d["ways"]:
        assert w["state"] in ("measured", "untried", "blocked", "fails", "mute", "stalls"), w
        if w["state"] == "measured":
            assert w["us"] > 0 and w["gbps"] > 0 and 0 <= w["resent"] <= 1, w
for w in want:
    what, _, value = w.partition("=")
    if what == "lines":  # the same names, in order, as the lines for people
        names = [l[9:25].strip() for l in open(value) if l[:2] == "  " and l[2:8].strip() in ("ok", "note", "WRONG")]
        assert names == [f["name"] for f in d["findings"]], (names, [f["name"] for f in d["findings"]])
    elif what == "wrong":
        assert any(f["state"] == "wrong" and value in f["what"] and f["advice"] for f in d["findings"]), d
    elif what == "nodes":
        assert len(d["nodes"]) == int(value), d["nodes"]
P
failures=0
# look NAME STATUS WANT...
look() {
    python3 "$dir/look.py" "$@" || {
        cat "$1"
        failures=$((failures + 1))
    }
}
"$info" doctor >"$dir/lines"
"$info" doctor --json >"$dir/plain"
look "$dir/plain" $? "lines=$dir/lines"
RONDO_IFACE='no"such\ü' "$info" doctor --json >"$dir/bad"
look "$dir/bad" $? 'wrong=no"such'
"$info" doctor --json --other >"$dir/out" 2>&1
[ $? = 2 ] && ! grep -q '{' "$dir/out" || { echo "an unknown option is taken"; failures=$((failures + 1)); }

mpirun=${MPIEXEC:-$(command -v mpirun)}
if [ -n "$mpirun" ] && "$info" 2>/dev/null | grep -q 'ucx, between nodes'; then
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
    if "$mpirun" --version 2>/dev/null | grep -q 'Open MPI\|OpenRTE'; then
        mpirun="$mpirun --oversubscribe --bind-to none"
    fi
    timeout 100 $mpirun -n 2 env RONDO_HOSTID=a "$info" doctor --network --json : \
        -n 1 env RONDO_HOSTID=b "$info" doctor --json --network >"$dir/network" 2>"$dir/said" </dev/null
    look "$dir/network" $? nodes=2
fi
[ $failures = 0 ]
