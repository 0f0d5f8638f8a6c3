#!/usr/bin/env python3
"""Makes tables in Markdown of a record of bench/record.py.

By default one table an operation, with a column for each number of ranks, mode and peer. --fastest makes a single table
in which a row is compared with the faster of several peers, as bench/nodes.sh has them. --summary prints the rows
below target instead, each beside the fastest of its peers: an allreduce of up to 4 ranks on one node is to be 1.5 times
as fast as an MPI, a long one 2 times, everything else of few ranks as fast as the peer, where 0.95 counts; from 8 ranks
on no row is to be slower, and each operation is to be 1.5 times as fast in the geometric mean. Where the record has
rows of the bare machine, an allreduce and a barrier of 16 ranks or more take up to 64 bytes at most 1.5 times as long as
it, and from 256 KB on broadcast, allgather, reduce and allreduce of 8 ranks or more reach 0.7 of its bandwidth.
"""
import argparse
import math
import signal
import sys

import record


def human(size):
    for unit, scale in (("MB", 1 << 20), ("KB", 1 << 10)):
        if size >= scale:
            return "%g %s" % (size / scale, unit)
    return "%d B" % size


def us(time):
    return "%.0f" % time if time >= 99.95 else "%.3g" % time


def compared(row):
    return "ratio" in row and row["peer"] != "copy"


def fastest(rows):
    """Of rows that differ in their peer alone, the one with the fastest peer."""
    best = {}
    for row in filter(compared, rows):
        key = (row["op"], row["nodes"], row["mode"], row.get("algo", ""), row["bytes"])
        if key not in best or row["ratio"] < best[key]["ratio"]:
            best[key] = row
    return list(best.values())


def many(row):
    """One node with more ranks than the two cores have that rondo was tuned on at first."""
    return row["mode"] == "host" and "+" not in row["nodes"] and row["ranks"] >= 8


def target(row):
    if many(row):
        return 1
    if row["op"] != "allreduce" or row["mode"] != "host" or "+" in row["nodes"]:
        return 0.95
    return 2 if row["bytes"] >= (262144 if row["ranks"] == 2 else 65536) else 1.5


def bare_target(row):
    """The part of the bare machine's speed that a row is to reach; 0: none."""
    if row["op"] in ("allreduce", "barrier") and row["bytes"] <= 64 and row["ranks"] >= 16:
        return 1 / 1.5
    if row["op"] in ("broadcast", "allgather", "reduce", "allreduce") and row["bytes"] >= 1 << 18 and many(row):
        return 0.7
    return 0


def below_bare(rows):
    """Prints the rows that are too far from what the machine itself gives; returns how many."""
    bare = {(row["op"], row["nodes"], row["bytes"]): row["us"] for row in rows if row["mode"] == "bare"}
    mine = {}
    for row in rows:
        key = (row["op"], row["nodes"], row["bytes"])
        if row["mode"] == "host" and "algo" not in row and key in bare and bare_target(row):
            mine[key] = row if key not in mine or row["us"] < mine[key]["us"] else mine[key]
    below = [(row, bare[key]) for key, row in mine.items() if bare[key] / row["us"] < bare_target(row)]
    if mine:
        print("\n%d rows beside the bare machine, %d below target" % (len(mine), len(below)))
    if below:
        print("%-16s %8s %10s %10s %10s %7s %7s" % ("below the bound", "ranks", "bytes", "rondo us", "bare us", "part",
                                                   "target"))
    for row, us_bare in below:
        print("%-16s %8s %10d %10.3f %10.3f %7.2f %7.2f" % (row["op"], row["nodes"], row["bytes"], row["us"], us_bare,
                                                          us_bare / row["us"], bare_target(row)))
    return len(below)


def means(rows):
    """Prints the geometric mean of the ratios, an operation a line; returns how many are below 1.5 from 8 ranks on."""
    ratios = {}
    for row in filter(many, rows):
        ratios.setdefault(row["op"], {}).setdefault(row["ranks"], []).append(math.log(row["ratio"]))
    counts = sorted({ranks for per in ratios.values() for ranks in per})
    if not counts:
        return 0
    print("\n%-16s %s   geometric mean over sizes, target 1.5" % ("ratio", "".join("%9s" % ("%d ranks" % c) for c in counts)))
    below = 0
    for op, per in ratios.items():
        mean = {ranks: math.exp(sum(logs) / len(logs)) for ranks, logs in per.items()}
        below += sum(value < 1.5 for value in mean.values())
        print("%-16s %s" % (op, "".join("%9s" % ("%.2f" % mean[c] if c in mean else "-") for c in counts)))
    return below


def summary(all_rows):
    rows = fastest(all_rows)
    below = [row for row in rows if row["ratio"] < target(row)]
    wrong = sum(row.get("wrong", 0) > 0 for row in rows)
    print("%d rows, %d below target, %d wrong" % (len(rows), len(below), wrong))
    if below:
        print("%-16s %8s %-6s %10s %10s %10s %7s %7s  %s" %
              ("below target", "ranks", "mode", "bytes", "rondo us", "peer us", "ratio", "target", "peer"))
    for row in below:
        print("%-16s %8s %-6s %10d %10.3f %10.3f %7.2f %7.2f  %s" %
              (row["op"], row["nodes"], row["mode"], row["bytes"], row["us"], row["peer_us"], row["ratio"],
               target(row), row["peer"]))
    few = means(rows)
    far = below_bare(all_rows)
    return 0 if rows and not below and not wrong and not few and not far else 1


def column(row):
    words = [row["nodes"] + " ranks", row["mode"], row.get("algo", ""), row["peer"]]
    return ", ".join(word for word in words if word)


def print_table(head, lines):
    print("| %s |\n|%s" % (" | ".join(head), "---|" * len(head)))
    for line in lines:
        print("| %s |" % " | ".join(line))


def one_table(op, rows):
    columns = list(dict.fromkeys(map(column, rows)))
    cells = {(column(row), row["bytes"]): row for row in rows}
    lines = []
    for size in sorted({row["bytes"] for row in rows}):
        line = ["-" if op == "barrier" else human(size)]
        for name in columns:
            row = cells.get((name, size))
            line += [us(row["us"]), us(row["peer_us"]), "**%.2f** (%.2f to %.2f)" %
                     (row["ratio"], row["low"], row["high"])] if row else ["-", "-", "-"]
        lines.append(line)
    print("\n### %s\n" % op)
    print_table(["size"] + [text for name in columns for text in (name + ": rondo us", "peer us", "ratio")], lines)


def fastest_table(rows):
    rows = fastest(rows)
    columns = list(dict.fromkeys((row["nodes"], row["mode"]) for row in rows))
    cells = {(row["op"], row["bytes"], row["nodes"], row["mode"]): row for row in rows}
    lines = []
    for op, size in dict.fromkeys((row["op"], row["bytes"]) for row in rows):
        line = [op, "-" if op == "barrier" else human(size)]
        for at in columns:
            row = cells.get((op, size) + at)
            bold = "**" if row and row["ratio"] >= 0.95 else ""
            line += [us(row["us"]), "%s%.2f%s %s" % (bold, row["ratio"], bold, row["peer"])] if row else ["-", "-"]
        lines.append(line)
    print_table(["operation", "size"] + [text for at in columns for text in ("%s, %s: us" % at, "ratio")], lines)


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as head ends it
    short, long = __doc__.split("\n\n")
    parser = argparse.ArgumentParser(description=short, epilog=long.strip() + " Exit: 0, with --summary 1 if a row is "
                                     "below target or wrong, 2 usage or a record that cannot be read.")
    parser.add_argument("record")
    parser.add_argument("op", nargs="*", help="operations (all)")
    parser.add_argument("--mode", choices=("host", "graph", "stream"), help="rows of one mode only")
    parser.add_argument("--fastest", action="store_true", help="one table, beside the fastest peer")
    parser.add_argument("--summary", action="store_true", help="rows below target")
    options = parser.parse_args()
    try:
        _, rows = record.load(options.record)
    except record.Bad as error:
        print("tables: %s" % error, file=sys.stderr)
        return 2
    rows = [row for row in rows if (not options.op or row["op"] in options.op) and
            (not options.mode or row["mode"] == options.mode)]
    if options.summary:
        return summary(rows)
    if options.fastest:
        fastest_table(rows)
        return 0
    rows = [row for row in rows if "ratio" in row]
    for op in dict.fromkeys(row["op"] for row in rows):
        one_table(op, [row for row in rows if row["op"] == op])
    return 0


if __name__ == "__main__":
    sys.exit(main())
