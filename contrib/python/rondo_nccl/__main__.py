"""python -m rondo_nccl -- PROGRAM ARGUMENTS...: runs the program with rondo's libnccl.so.2 in LD_PRELOAD."""
import os
import sys

from . import path

command = sys.argv[1:]
if command[:1] == ["--"]:
    command = command[1:]
if not command:
    sys.exit(__doc__)
before = os.environ.get("LD_PRELOAD")
os.environ["LD_PRELOAD"] = path() + (":" + before if before else "")
try:
    os.execvp(command[0], command)
except OSError as error:
    sys.exit("rondo_nccl: cannot run {0}: {1}".format(command[0], error.strerror))
