"""rondo's libnccl.so.2 for Python programs. Two lines, before anything that loads NCCL is imported:

    import rondo_nccl
    rondo_nccl.preload()

or, also for programs that carry a path to their own NCCL: python -m rondo_nccl -- python train.py
"""
import ctypes
import os


def path():
    """Where libnccl.so.2 lies."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "rondo", "libnccl.so.2")


def preload():
    """Loads it into this process: who asks for libnccl.so.2 by its name from now on gets this one."""
    return ctypes.CDLL(path(), mode=ctypes.RTLD_GLOBAL)
