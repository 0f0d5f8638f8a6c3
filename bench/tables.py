#!/usr/bin/env python3
"""Makes tables in Markdown of a record of bench/record.py.

By default one table an operation, with a column for each number of ranks, mode and peer. --fastest makes a single table
in which a row is compared with the faster of several peers, as bench/nodes.sh has them. --summary prints the rows
below target instead: an allreduce on one node beside an MPI is to be 1.5 times as fast, a long one 2 times, everything
else as fast as the peer, where 0.95 counts.
"""
import argparse
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


def target(row):
    if row["op"] != "allreduce" or row["mode"] != "host" or "+" in row["nodes"]:
        return 0.95
    return 2 if row["bytes"] >= (262144 if row["ranks"] == 2 else 65536) else 1.5


def summary(rows):
    rows = fastest(rows)
    below = [row for row in rows if row["ratio"] < target(row)]
    wrong = sum(row.get("wrong", 0) > 0 for row in rows)
    print("%d rows, %d below target, %d wrong" % (len(rows), len(below), wrong))
    if below:
        print("%-16s %8s %-6s %10s %10s %10s %7s %7s" %
              ("below target", "ranks", "mode", "bytes", "rondo us", "peer us", "ratio", "target"))
    for row in below:
        print("%-16s %8s %-6s %10d %10.3f %10.3f %7.2f %7.2f" % (row["op"], row["nodes"], row["mode"], row["bytes"],
                                                              row["us"], row["peer_us"], row["ratio"], target(row)))
    return 0 if rows and not below and not wrong else 1


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
