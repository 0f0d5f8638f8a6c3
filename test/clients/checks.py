# What the clients in Python share: a check has a name, says "ok" or "FAIL" with the reason on a line of its own, and the
# program ends with 0, 1 or 77 (it cannot be tried here). What is loaded as NCCL is said first.
import os
import sys
import time
import traceback

failed = []
rank = int(os.environ.get("RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0")))
world = int(os.environ.get("WORLD_SIZE", os.environ.get("OMPI_COMM_WORLD_SIZE", "1")))
_began = time.monotonic()


def say(*words):
    print("[%d %5.1f s]" % (rank, time.monotonic() - _began), *words, flush=True)


def skip(why):
    say("skipped:", why)
    sys.exit(77)


def served_by():
    with open("/proc/self/maps") as maps:
        files = sorted({line.split()[-1] for line in maps if "nccl.so" in line or "librondo.so" in line})
    say("libraries:", " ".join(files) or "none")


def check(name, function, *arguments):
    """Runs it; a failure is remembered, and the next check goes on."""
    try:
        answer = function(*arguments)
        say("ok  ", name, "" if answer is None else answer)
    except Exception as problem:
        failed.append(name)
        say("FAIL", name + ":", type(problem).__name__, str(problem).strip().replace("\n", " | ")[:600])
        frames = traceback.extract_tb(problem.__traceback__)
        say("     at", " < ".join("%s:%d" % (os.path.basename(f.filename), f.lineno) for f in reversed(frames[-4:])))


def finish():
    say("checks failed: %d %s" % (len(failed), " ".join(failed)))
    sys.stdout.flush()
    sys.exit(1 if failed else 0)
