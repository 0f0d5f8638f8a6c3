#!/bin/sh
# How much of a long run is done stands on standard error if that is a terminal, is taken away at the end, and does not
# stand in a pipe: rondo-perf, rondo-tune, rondo-info doctor.
set -u
command -v python3 >/dev/null || { echo "no python3 here"; exit 77; }
[ -x "$top_builddir/rondo-perf" ] || { echo "no rondo-perf here"; exit 77; }
exec python3 - "$top_builddir" <<'END'
import os
import pty
import subprocess
import sys

build = sys.argv[1]
RUNS = (
    ("rondo-perf", ["allreduce,barrier", "--ranks", "2", "-e", "4K", "-f", "8", "--turns", "3", "--turn-ms", "1"], "sizes"),
    ("rondo-tune", ["--quick", "--ranks", "2", "--output", os.devnull], "measurements"),
    ("rondo-info", ["doctor"], "areas"),
)
failed = 0


def on_terminal(command):
    """What a program writes to standard error where that is a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        said = b""
        try:
            while True:
                part = os.read(ours, 4096)
                if not part:
                    break
                said += part
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    return process.returncode, said.decode(errors="replace")


for name, arguments, unit in RUNS:
    command = [os.path.join(build, name)] + arguments
    code, said = on_terminal(command)
    good = code in (0, 1) and "0 of " in said and unit in said and " s left" in said and "\r\033[K" in said[said.rfind(" left"):]
    piped = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if not good or " s left" in piped.stderr or "0 of " in piped.stderr or "\033" in piped.stdout + piped.stderr:
        failed = 1
        print("failed: %s: exit %d; terminal: %r; pipe: %r" % (name, code, said[-600:], piped.stderr[:300]))
sys.exit(failed)
END
