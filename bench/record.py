#!/usr/bin/env python3
"""Turns raw output of rondo-perf into a record: a file of JSON lines that scripts compare and make tables of.

bench/suite.sh, nodes.sh and gpu.sh call this at their end; bench/results/README.md describes the form of a record.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

# What tells one row of a record from all others; a row without a member has the empty value there.
KEY = ("op", "nodes", "mode", "algo", "peer", "bytes")


class Bad(Exception):
    """A file that is not what it should be; the text is for the user."""


def key(row):
    return tuple(row.get(name, "") for name in KEY)


def said(row):
    """A row's key as a line for people."""
    words = [row["op"], "%d B" % row["bytes"], "ranks " + row["nodes"], row["mode"]]
    return ", ".join(words + [row[name] for name in ("algo", "peer") if row.get(name)])


def load(path):
    """The meta line and the rows of a record."""
    try:
        lines = [json.loads(line) for line in open(path, encoding="utf-8") if line.strip()]
    except OSError as error:
        raise Bad("%s: %s" % (path, error.strerror)) from None
    except ValueError as error:
        raise Bad("%s is no record: %s" % (path, error)) from None
    if not lines or not all(isinstance(line, dict) for line in lines) or "record" not in lines[0]:
        raise Bad("%s is no record: its first line names none" % path)
    seen = set()
    for number, row in enumerate(lines[1:], 2):
        missing = [name for name in ("op", "ranks", "nodes", "mode", "bytes", "us") if name not in row]
        if missing:
            raise Bad("%s: line %d has no %s" % (path, number, ", ".join(missing)))
        if "ratio" in row and not ("peer" in row and "peer_us" in row):
            raise Bad("%s: line %d has a ratio and no peer" % (path, number))
        if key(row) in seen:
            raise Bad("%s: line %d repeats a row: %s" % (path, number, said(row)))
        seen.add(key(row))
    if not seen:
        raise Bad("%s: no rows" % path)
    return lines[0], lines[1:]


def layout(command, ranks):
    """How many ranks are on each node, as "2+2"; only ranks that play nodes have several numbers."""
    counts = re.findall(r" -n ([\d+]+)", command)
    if "RONDO_HOSTID" in command and counts:
        return "+".join(counts)
    return next((count for count in counts if "+" in count), str(ranks))


def peer_of(text, command):
    """A peer's name as a row has it, and its name and version as the meta line has them."""
    if text.startswith("a copy"):
        return "copy", ""
    text = re.split(r", in turns|, /", text)[0]
    found = re.match(r"(.*?)(?: Version:)?\s+v?(\d+\.\d[\w.]*)", text)
    name, version = found.groups() if found else (text, "")
    pml = re.search(r"--mca pml (\w+)", command)
    variant = " " + pml.group(1) if pml else " symmetric" if "nccl:symmetric" in command else ""
    return name + variant, (name + " " + version).strip()


class Reader:
    """Reads one raw file: rows, and what the meta line says of all rows together."""

    def __init__(self, path, meta):
        self.path, self.meta, self.rows = path, meta, []
        self.command = self.peer = ""
        self.base = {}
        for line in open(path, encoding="utf-8", errors="replace"):
            self.line(line.rstrip("\n"))

    def note(self, name, value):
        self.meta.setdefault(name, set()).add(value)

    def line(self, line):
        run = re.match(r"# (?:rondo-perf|host_bound) [\d.]+: (\w+), (.*?)(?:, root \d+)?, (\d+) ranks, ([^,]*)", line)
        special = re.match(r"# rondo-perf (call|create): ", line)
        machine = re.match(r"# (.*); (\d+) cores \(\d+ for a rank\), (\d+) MB; (\S+ [\d.]+)", line)
        turns = re.search(r"median of (\d+) turns", line) or re.match(r"# (\d+) turns of", line)
        if line.startswith("$ "):
            self.command = line[2:]
        elif run:
            self.begin(*run.groups())
        elif special:
            self.special(special.group(1), line)
        elif machine:
            self.note("machine", "%s, %s cores, %s MB, %s" % machine.groups())
        elif line.startswith("# peer: "):
            self.peer, version = peer_of(line[8:], self.command)
            if version:
                self.note("peers", version)
        if turns:
            self.note("turns", int(turns.group(1)))
        if re.match(r" *\d+ +\d+ +[\d.]+ ", line) and self.base:
            self.row(line.split())
        elif (self.base.get("op") in ("call", "create") and
              re.match(r"(rondo|bare|call's path|first|create|destroy|holds) +[\d.]+ ", line)):
            self.special_row(line)

    def begin(self, op, numbers, ranks, memory):
        mode = "bare" if memory == "bare" else "host"
        if memory == "CUDA":
            mode = "graph" if "--graph" in self.command else "stream"
        algo, proto = (re.search(r"--%s (\S+)" % name, self.command) for name in ("algo", "proto"))
        self.peer = ""
        self.base = {"op": op, "ranks": int(ranks), "nodes": layout(self.command, ranks), "mode": mode}
        if algo:
            self.base["algo"] = algo.group(1) + ("/" + proto.group(1) if proto else "")
        if op != "barrier":
            self.note("type", numbers.split()[0])

    def row(self, word):
        row = dict(self.base, bytes=int(word[0]), us=float(word[2]), min=float(word[3]), max=float(word[4]))
        if self.peer and len(word) >= 12 and word[8] != "-":
            row.update(peer=self.peer, peer_us=float(word[8]), ratio=float(word[9]), low=float(word[10]),
                       high=float(word[11]))
        if word[7] != "N/A":
            row["wrong"] = int(word[7])
        self.rows.append(row)

    def special(self, op, line):
        """call and create have lines of their own in place of a table."""
        ranks = re.search(r"(\d+) ranks", line).group(1)
        device = "--device cuda" in self.command or "empty kernel" in line or "CUDA" in line
        self.base = {"op": op, "ranks": int(ranks), "nodes": ranks, "mode": "stream" if device else "host",
                     "bytes": 8 if op == "call" else 0}

    def special_row(self, line):
        name, numbers = re.match(r"([a-z' ]+?) +([\d.]+.*)", line).groups()
        value = [float(number) for number in re.findall(r"\d+\.\d+", numbers)]
        if name in ("rondo", "bare", "call's path"):
            op = {"rondo": "call", "bare": "call_bare", "call's path": "call_path"}[name]
            self.rows.append(dict(self.base, op=op, us=round(value[0] / 1e3, 6), min=round(value[1] / 1e3, 6),
                                  max=round(value[2] / 1e3, 6)))
        elif name == "holds":
            self.rows[-2].update(holds_mb=value[0], holds_mb_used=value[1])
        else:
            op = {"first": "create_first", "create": "create", "destroy": "destroy"}[name]
            row = dict(self.base, op=op, us=round(value[0] * 1e3, 3))
            if len(value) > 1:
                row.update(min=round(value[1] * 1e3, 3), max=round(value[2] * 1e3, 3))
            self.rows.append(row)


def raw_files(paths):
    for path in map(pathlib.Path, paths):
        if path.is_dir():
            yield from sorted(file for file in path.glob("*.txt") if file.name != "summary.txt")
        elif path.is_file():
            yield path
        else:
            raise Bad("%s: no such file or folder" % path)


def head_commit():
    here = pathlib.Path(__file__).resolve().parent
    git = subprocess.run(["git", "-C", str(here), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return git.stdout.strip() if git.returncode == 0 else "unknown"


def convert(options):
    rows, gathered, empty = [], {}, []
    for path in raw_files(options.raw):
        found = Reader(path, gathered).rows
        if not found:
            empty.append(str(path))
        rows += found
    meta = {"record": options.name, "date": options.date, "commit": options.commit or head_commit()}
    for name in ("command", "gpus", "note"):
        if getattr(options, name):
            meta[name] = getattr(options, name)
    for name in sorted(gathered):
        values = sorted(gathered[name])
        meta[name] = values[0] if len(values) == 1 else values
    if isinstance(meta.get("type"), list):
        raise Bad("runs of several types (%s) in one record" % ", ".join(meta["type"]))
    with open(options.output, "w", encoding="utf-8") as out:
        for line in [meta] + rows:
            out.write(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n")
    load(options.output)  # refuses a row that is there twice
    for path in empty:
        print("record: no measurement in %s" % path, file=sys.stderr)
    return 1 if empty else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0], epilog="Exit: 0 done, 1 a raw "
                                     "file without a measurement (the others are converted) or, with --check, a record "
                                     "that is not well formed, 2 usage, or raw output that makes no record.")
    parser.add_argument("raw", nargs="*", help="folders or files of raw output")
    parser.add_argument("-o", "--output", help="the record to write")
    parser.add_argument("--name", help="machine class and kind of run, as 2xh200-as-nodes")
    parser.add_argument("--date", help="day of the measurement, YYYY-MM-DD")
    parser.add_argument("--commit", help="commit that was measured (the current one)")
    parser.add_argument("--command", help="command that made the raw output")
    parser.add_argument("--gpus", help="GPUs of the machine, as \"2 x NVIDIA H200\"")
    parser.add_argument("--note", help="anything else that a reader must know")
    parser.add_argument("--check", nargs="+", metavar="RECORD", help="only see whether records are well formed")
    options = parser.parse_args()
    try:
        if options.check:
            for path in options.check:
                load(path)
            return 0
        if not (options.raw and options.output and options.name and options.date):
            parser.error("raw output, --output, --name and --date are needed (or --check)")
        return convert(options)
    except Bad as error:
        print("record: %s" % error, file=sys.stderr)
        return 1 if options.check else 2


if __name__ == "__main__":
    sys.exit(main())
