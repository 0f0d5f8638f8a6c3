# JAX's collectives over the GPUs of one process, or of two (JAX_PROCESSES=2).
#
# Needs: JAX with CUDA, 2 GPUs or more.
# Run:   LD_PRELOAD=.../libnccl.so.2 python jax_devices.py
# Exit:  0 all right, 1 not, 77 not to be tried here.
import os
import subprocess
import sys

from checks import check, finish, say, served_by, skip

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
processes = int(os.environ.get("JAX_PROCESSES", "1"))
if processes > 1 and "JAX_RANK" not in os.environ:
    ranks = [subprocess.Popen([sys.executable, os.path.abspath(__file__)], env=dict(os.environ, JAX_RANK=str(r)))
             for r in range(processes)]
    sys.exit(max(r.wait() for r in ranks))
try:
    import jax
    import jax.numpy as jnp
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
    if processes > 1:
        r = int(os.environ["JAX_RANK"])
        jax.distributed.initialize("127.0.0.1:13377", processes, r, local_device_ids=[r])
    devices = [d for d in jax.devices() if d.platform in ("gpu", "cuda")]
except (ImportError, RuntimeError) as problem:
    skip(problem)
n = len(devices)
if n < 2:
    skip("%d GPUs" % n)
import numpy

mesh = Mesh(numpy.array(devices), ("x",))
shard_map = getattr(jax, "shard_map", None)
if shard_map is None:
    from jax.experimental.shard_map import shard_map


def apply(function, x, out=P("x")):
    """Each device has a block of x; the whole result, as this process sees it."""
    whole = jax.make_array_from_callback(x.shape, NamedSharding(mesh, P("x")), lambda index: x[index])
    got = jax.jit(shard_map(function, mesh=mesh, in_specs=P("x"), out_specs=out))(whole)
    got.block_until_ready()
    return [(s.index, numpy.asarray(s.data)) for s in got.addressable_shards]


def same(parts, want, what):
    for index, part in parts:
        assert numpy.array_equal(part, want[index]), "%s: %s, should be %s" % (what, part.ravel()[:5],
                                                                              want[index].ravel()[:5])


def sums():
    for dtype in (numpy.float32, numpy.int32, jnp.bfloat16, numpy.float16):
        for count in (4, 1000, 1 << 20):
            x = (numpy.arange(n * count) % 7).astype(dtype)
            want = x.reshape(n, count).astype(numpy.float64).sum(0).astype(dtype)
            same(apply(lambda b: jax.lax.psum(b, "x"), x, P()), want, "psum of %s" % dtype)
    x = numpy.arange(n * 10).astype(numpy.float32)
    same(apply(lambda b: jax.lax.pmax(b, "x"), x, P()), x[-10:], "pmax")


def moves():
    x = numpy.arange(n * n * 100).astype(numpy.float32)
    blocks = x.reshape(n, n, 100)
    same(apply(lambda b: jax.lax.all_gather(b, "x", tiled=True), x), numpy.tile(x, n), "all_gather")
    same(apply(lambda b: jax.lax.psum_scatter(b, "x", tiled=True), x), blocks.sum(0).ravel(), "psum_scatter")
    same(apply(lambda b: jax.lax.all_to_all(b, "x", 0, 0, tiled=True), x), blocks.transpose(1, 0, 2).ravel(),
         "all_to_all")
    ring = [(k, (k + 1) % n) for k in range(n)]
    same(apply(lambda b: jax.lax.ppermute(b, "x", ring), x), numpy.roll(blocks, 1, 0).ravel(), "ppermute")


def ragged():
    """In groups of one rank, where XLA may take a team of load and store for complete, and of all ranks."""
    count = 8 * n
    x = numpy.arange(1, n * count + 1).astype(numpy.float32)

    def alone(b):
        zero = (b[:1] * 0).astype(jnp.int32)
        return jax.lax.ragged_all_to_all(b, b * 0, zero, zero + 5, zero + 2, zero + 5, axis_name="x",
                                         axis_index_groups=[[k] for k in range(n)])

    def together(b):
        zeros = (b[:n] * 0).astype(jnp.int32)
        first = zeros + jnp.arange(n, dtype=jnp.int32) * 8
        there = zeros + jax.lax.axis_index("x").astype(jnp.int32) * 8
        return jax.lax.ragged_all_to_all(b, b * 0, first, zeros + 8, there, zeros + 8, axis_name="x")

    want = numpy.zeros_like(x).reshape(n, count)
    want[:, 2:7] = x.reshape(n, count)[:, :5]
    same(apply(alone, x), want.ravel(), "ragged_all_to_all in groups of one")
    same(apply(together, x), x.reshape(n, n, 8).transpose(1, 0, 2).ravel(), "ragged_all_to_all")


def matrix():
    a = numpy.ones((64 * n, 32), numpy.float32)
    sharded = jax.make_array_from_callback(a.shape, NamedSharding(mesh, P("x")), lambda index: a[index])
    got = jax.jit(lambda m: m.T @ m, out_shardings=NamedSharding(mesh, P()))(sharded)
    assert float(numpy.asarray(got.addressable_shards[0].data)[0, 0]) == 64 * n


say("jax", jax.__version__, devices)
check("psum, pmax", sums)
served_by()
check("all_gather, psum_scatter, all_to_all, ppermute", moves)
check("a product", matrix)
if hasattr(jax.lax, "ragged_all_to_all"):
    check("ragged_all_to_all", ragged)
finish()
