#!/usr/bin/env python3
"""Measures what the monitor costs: rondo-perf with RONDO_MONITOR=1 and 0, in turns, and compares it with the budget.

For each row the medians of both sides and their quartiles, and the difference of the two runs of a turn: its median with
a confidence interval of 95 % by order statistics, which supposes no distribution. "over" is a row whose whole interval
lies above the budget, "within" one whose whole interval lies below it; what is neither needs more turns, or a quieter
machine. Ranks should be bound and the machine be left alone. Exit: 0 no row is over, 1 some are, 2 usage.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys

GROUP = 64
REPEAT_NS, REPEAT_PART, GROUP_NS = 3, 0.03, 40  # of a call that repeats the last one; of an operation of a group


def run(perf, ranks, group, on, most):
    """Returns the time of each size, in ns."""
    command = [perf, "allreduce", "--ranks", str(ranks), "-b", str(8 * group), "-e", str(max(most, 8 * group)),
               "--turns", "5", "--format", "json", "-c", "0"]
    if group > 1:
        command += ["--pieces", str(group)]
    environment = dict(os.environ, RONDO_MONITOR="1" if on else "0")
    out = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout
    return {row["bytes"]: 1000 * row["time_us"]["median"] for row in json.loads(out)["results"]}


def interval(values):
    """The median's confidence interval: the order statistics between which it lies with 95 %."""
    values, n, below, rank = sorted(values), len(values), 0.0, 0
    while rank < n // 2 and below + math.comb(n, rank) / 2 ** n <= 0.025:
        below += math.comb(n, rank) / 2 ** n
        rank += 1
    return values[max(rank - 1, 0)], values[n - max(rank, 1)]


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return "%9.1f (%.1f to %.1f)" % (middle, low, high)


def budget(size, group, off):
    """A short call that repeats the last one has both bounds; longer ones the part, as 3 ns cannot be measured there."""
    if group > 1:
        return GROUP_NS * group
    return min(REPEAT_NS, REPEAT_PART * off) if size <= 8 else max(REPEAT_NS, REPEAT_PART * off)


def measure(options, ranks, group):
    """Prints the rows of one setting. Returns how many are over."""
    on, off, over = {}, {}, 0
    for turn in range(options.turns):
        for side in (True, False) if turn % 2 else (False, True):  # whoever is first may find another machine
            for size, ns in run(options.perf, ranks, group, side, options.most).items():
                (on if side else off).setdefault(size, []).append(ns)
    for size in sorted(off):
        differences = [a - b for a, b in zip(on[size], off[size])]
        low, high = interval(differences)
        bound = budget(size, group, statistics.median(off[size]))
        word = "over" if low > bound else "within" if high <= bound else "?"
        over += word == "over"
        print("%5d %5d %8d %32s %32s %9.1f [%.1f, %.1f] %9.1f  %s" %
              (ranks, group, size, quartiles(off[size]), quartiles(on[size]), statistics.median(differences), low, high,
               bound, word), flush=True)
    return over


def numbers(text):
    return [int(number) for number in text.split(",")]


def main():
    summary, detail = __doc__.split("\n\n")
    parser = argparse.ArgumentParser(description=summary, epilog=detail)
    parser.add_argument("--perf", default="./rondo-perf", help="the program (./rondo-perf)")
    parser.add_argument("--turns", type=int, default=31, help="of each side (31)")
    parser.add_argument("--ranks", type=numbers, default="2,4", help="numbers of ranks (2,4)")
    parser.add_argument("--most", type=int, default=1 << 20, help="bytes of the longest message (1 MB)")
    options = parser.parse_args()
    if options.turns < 2:
        parser.error("--turns must be 2 at least")
    print("ranks group    bytes          ns without (quartiles)             ns with (quartiles)   difference [95 %]   "
          "budget")
    over = sum(measure(options, ranks, group) for ranks in options.ranks for group in (1, GROUP))
    print("%d rows are over" % over)
    return over > 0


if __name__ == "__main__":
    sys.exit(main())
