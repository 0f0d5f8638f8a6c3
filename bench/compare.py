#!/usr/bin/env python3
"""Compares two records of bench/record.py row by row, and says which rows have become worse.

A row is worse if its time grew, or its ratio to the peer fell, by more than --worse per cent, or if results became
wrong. Times are comparable on one machine in one hour only; between machines or days compare ratios (--only ratio).
"""
import argparse
import signal
import sys

import record


def worse(old, new, limit, only):
    """What became worse in a row, as words; empty if nothing did."""
    found = []
    if new.get("wrong", 0) > 0:
        found.append("%d wrong elements" % new["wrong"])
    if only != "ratio" and new["us"] > old["us"] * (1 + limit / 100):
        found.append("time %.3f to %.3f us (%+.1f %%)" % (old["us"], new["us"], (new["us"] / old["us"] - 1) * 100))
    if only != "time" and "ratio" in old and "ratio" in new and new["ratio"] < old["ratio"] * (1 - limit / 100):
        found.append("ratio %.2f to %.2f (%+.1f %%)" % (old["ratio"], new["ratio"],
                                                         (new["ratio"] / old["ratio"] - 1) * 100))
    return ", ".join(found)


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as head ends it
    summary, detail = __doc__.split("\n\n")
    parser = argparse.ArgumentParser(description=summary, epilog=detail.strip() + " Exit: 0 no row is worse, 1 some "
                                     "are, 2 usage, or records that cannot be read or have no row in common.")
    parser.add_argument("old", help="record to compare with, as bench/results/2xh200.jsonl")
    parser.add_argument("new", help="record that was made now")
    parser.add_argument("--worse", type=float, default=3, metavar="PERCENT", help="what is still the same (3)")
    parser.add_argument("--only", choices=("time", "ratio"), help="look at one of the two only")
    options = parser.parse_args()
    if options.worse < 0:
        parser.error("--worse takes a percentage of 0 or more")
    try:
        (old_meta, old_rows), (new_meta, new_rows) = record.load(options.old), record.load(options.new)
    except record.Bad as error:
        print("compare: %s" % error, file=sys.stderr)
        return 2
    old, new = ({record.key(row): row for row in rows} for rows in (old_rows, new_rows))
    common = [key for key in old if key in new]
    for name in ("machine", "gpus", "peers", "type"):
        if old_meta.get(name) != new_meta.get(name):
            print("note: %s differ: %s; %s" % (name, old_meta.get(name), new_meta.get(name)))
    for path, mine, theirs in ((options.old, old, new), (options.new, new, old)):
        for key in mine:
            if key not in theirs:
                print("only in %s: %s" % (path, record.said(mine[key])))
    if not common:
        print("compare: %s and %s have no row in common" % (options.old, options.new), file=sys.stderr)
        return 2
    bad = [(key, text) for key in common if (text := worse(old[key], new[key], options.worse, options.only))]
    for key, text in bad:
        print("worse: %s: %s" % (record.said(new[key]), text))
    print("%d rows compared, %d worse by more than %g %%" % (len(common), len(bad), options.worse))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
