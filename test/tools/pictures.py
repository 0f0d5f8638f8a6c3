"""Reads the pictures that pictures.sh has made: are the axes, panels, lines and numbers what they should be?"""
import math
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

SVG = "{http://www.w3.org/2000/svg}"
folder = pathlib.Path(sys.argv[1])
failures = 0


def check(good, *what):
    global failures
    if not good:
        failures += 1
        print("failed:", *what)


def read(name):
    """Title, the text of <desc>, and every drawn line: its colour ("#0072b2"), whether it is filled, its points."""
    root = ElementTree.parse(folder / name).getroot()
    lines = []
    for path in root.iter(SVG + "path"):
        style = dict(part.strip().split(":", 1) for part in path.get("style", "").split(";") if ":" in part)
        colour = next((style[name] for name in ("stroke", "fill") if style.get(name, "none") != "none"), "")
        parts = re.findall(r"rgb\(([\d.]+)%,\s*([\d.]+)%,\s*([\d.]+)%\)", colour)
        if not parts or path.get("d") is None:
            continue
        rgb = "#%02x%02x%02x" % tuple(round(float(part) * 2.55) for part in parts[0])
        points = [tuple(map(float, pair)) for pair in re.findall(r"[ML] ([\d.-]+) ([\d.-]+)", path.get("d"))]
        lines.append((rgb, style.get("stroke", "none") == "none", points))
    return root.findtext(SVG + "title"), root.findtext(SVG + "desc"), lines


def panels(desc):
    """Of the text: panel by panel its axes, and its series as {name: (colour, [(x, y, low, high)])}."""
    found = []
    for line in desc.splitlines():
        head = re.match(r'panel "(.*)", (\S+ \[.*\]), y (\w+) (\S+) to (\S+) at (\S+) to ([\d.]+)'
                        r'(?:, x logarithmic (\S+) to (\S+) bytes at (\S+) to (\S+))?', line)
        series = re.match(r'  series "(.*)" (#\w+)', line)
        if head:
            title, unit, kind, *numbers = head.groups()
            found.append({"title": title, "unit": unit, "log": kind == "logarithmic",
                          "ends": [float(number) if number else None for number in numbers], "series": {}})
        elif series:
            points = []
            found[-1]["series"][series.group(1)] = (series.group(2), points)
        elif line.startswith("    "):
            points.append(tuple(map(float, line.split())))
    return found


def near(a, b):
    return abs(a - b) <= 0.02 * max(abs(a), abs(b))


def at(panel, x, y):
    """Where the axes put a value, in points."""
    y0, y1, base, top, x0, x1, left, right = panel["ends"]
    part = math.log(y / y0) / math.log(y1 / y0) if panel["log"] else (y - y0) / (y1 - y0)
    return left + math.log(x / x0) / math.log(x1 / x0) * (right - left), base + part * (top - base)


def distance(point, line):
    """From a point to a line of several pieces; cairo joins two pieces that go in one direction."""
    least = math.inf
    for (ax, ay), (bx, by) in zip(line, line[1:]):
        length = (bx - ax) ** 2 + (by - ay) ** 2
        part = ((point[0] - ax) * (bx - ax) + (point[1] - ay) * (by - ay)) / length if length else 0
        part = min(1, max(0, part))
        least = min(least, math.dist(point, (ax + part * (bx - ax), ay + part * (by - ay))))
    return least


def drawn(panel, lines, name, filled=False):
    """Is there a line (or band) of the series' colour through its points?"""
    colour, points = panel["series"][name]
    want = [at(panel, x, y) for x, y, _, _ in points]
    if filled:
        want = [at(panel, x, low) for x, _, low, _ in points] + [at(panel, x, high) for x, _, _, high in points[::-1]]
    return any(rgb == colour and fill == filled and all(distance(point, line) < 0.1 for point in want)
               for rgb, fill, line in lines if len(line) > 2)


def perf():
    title, desc, lines = read("perf.svg")
    table, op = {}, ""
    for line in open(folder / "perf.txt", encoding="utf-8"):
        head = re.match(r"# rondo-perf [\d.]+: (\w+)", line)
        op = head.group(1) if head else op
        row = line.split()
        if row and row[0].isdigit():
            table[op, int(row[0])] = float(row[2]), float(row[8]), float(row[5])
    found = panels(desc)
    check("2 ranks" in title and "float32 sum" in title, "title", title)
    check("cores" in desc and "$ rondo-perf allreduce,allgather,barrier -b 8" in desc, "caption", desc[:300])
    check([(panel["title"], panel["unit"]) for panel in found] ==
          [("allreduce", "time [µs]"), ("allgather", "time [µs]"), ("barrier", "time [µs]"),
           ("allreduce", "bandwidth [GB/s]"), ("allgather", "bandwidth [GB/s]")], "panels", found)
    for panel in found:
        names = ["rondo", "rondo tree,allgather=ring,reduce_scatter=ring,broadcast=tree,alltoall=direct"[:63]] + ["bare machine"] * (panel["title"] == "allreduce")
        check(list(panel["series"]) == names or sorted(panel["series"]) == sorted(names), panel["title"], "has",
              list(panel["series"]))
        for number, name in enumerate(names[:2]):
            for x, y, low, high in panel["series"][name][1]:
                time, peer, algbw = table[panel["title"], int(x)]
                shown = (time, peer)[number] if panel["log"] else algbw
                check(number == 1 and not panel["log"] or near(y, shown) or abs(y - shown) < 0.002, panel["title"],
                      name, x, "shows", y, "and the table", shown)
                check(low <= y * 1.00001 and y <= high * 1.00001, "quartiles", low, y, high)
        if panel["title"] == "barrier":
            continue
        check(len(panel["series"]["rondo"][1]) == 4, "sizes of", panel["title"])
        for name in names[:2]:
            check(drawn(panel, lines, name), panel["title"], panel["unit"], name, "is not drawn where it should be")
        check(drawn(panel, lines, "rondo", filled=True), panel["title"], panel["unit"], "has no band")
    if found and found[0]["title"] == "allreduce":
        check([point[:2] for point in found[0]["series"]["bare machine"][1]] == [(8, 0.125), (512, 0.5)], "bound")


def plan():
    _, desc, lines = read("plan.svg")
    found = panels(desc)
    check(len(found) == 1 and found[0]["ends"][4:6] == [8, 67108864], "axes of the plan", found[0]["ends"])
    rows = [line.replace("-->", " ").split() for line in open(folder / "plan.txt", encoding="utf-8")]
    rows = [row for row in rows if len(row) == 4 and re.fullmatch(r"\d+\.\d+", row[-1])]
    best = {}
    for row in rows:
        best.setdefault(row[0].split(":")[0], float(row[-1]))
    check(len(best) > 2, "the table of rondo-info plan", rows)
    for algo, us in list(best.items()) + [("chosen", min(best.values()))]:
        values = dict(point[:2] for point in found[0]["series"][algo][1])
        check(abs(values[4096] - us) < 0.01, algo, "4096", values[4096], us)
        if len(values) == 24:
            check(drawn(found[0], lines, algo), algo, "is not drawn")
    check([point[:2] for point in found[0]["series"]["ring, measured"][1]] == [(1024, 12.5)], "dots")
    check(found[0]["series"]["ring, measured"][0] == found[0]["series"]["ring"][0], "a dot's colour")


def topo():
    _, desc, lines = read("h200-8.gpus.svg")
    check(desc.count("NVIDIA H200") == 8 and "NUMA node 1" in desc and "GPU 0: X NV18" in desc, desc)
    check(sum(rgb == "#d5ecd4" and fill for rgb, fill, _ in lines) == 8, "boxes of GPUs")
    check(sum(rgb == "#9ecae1" and fill for rgb, fill, _ in lines) == 56, "cells of NVLinks")
    if (folder / "four-numa.xml.svg").exists():
        _, desc, lines = read("four-numa.xml.svg")
        check("NUMA node 3" in desc and "cores 28 to 31" in desc, desc)
        check(sum(rgb == "#dbe9f6" and fill for rgb, fill, _ in lines) == 8, "boxes of caches")


perf()
plan()
topo()
sys.exit(failures > 0)
