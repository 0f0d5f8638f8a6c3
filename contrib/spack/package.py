# Spack's recipe for rondo: copy it to REPOSITORY/packages/rondo/package.py, or see contrib/README.md.
#
# It builds a checkout: `spack dev-build rondo@main` in one, or set `git` to where yours comes from.
from spack.package import *


class Rondo(AutotoolsPackage):
    """Collective communication for codes that mpirun launches: allreduce, broadcast, all-to-all and the others,
    by shared memory on a node and by UCX between nodes. One build serves every MPI."""

    license("BSD-3-Clause")

    version("main", branch="main")
    version("0.1.0", tag="v0.1.0")

    variant("mpi", default=True, description="rondo-perf measures beside the MPI; the library never needs one")
    variant("ucx", default=True, description="Communicators of several nodes")
    variant("libfabric", default=False, description="Another transport between nodes, by RONDO_TRANSPORT=ofi")
    variant("hwloc", default=True, description="Finds cores, NUMA nodes and caches")
    variant("expat", default=True, description="Reads NCCL's topology files")

    depends_on("c", type="build")
    depends_on("autoconf@2.71:", type="build")
    depends_on("automake@1.16:", type="build")
    depends_on("libtool", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("libsodium@1.0.12:")
    depends_on("mpi", when="+mpi")
    depends_on("ucx@1.12:", when="+ucx")
    depends_on("libfabric@1.11:", when="+libfabric")
    depends_on("hwloc@2:", when="+hwloc")
    depends_on("expat@2.1:", when="+expat")

    def autoreconf(self, spec, prefix):
        autoreconf("--force", "--install")

    def configure_args(self):
        args = ["--with-cuda=no"]
        for name in ("mpi", "ucx", "libfabric", "hwloc", "expat"):
            if self.spec.satisfies("+" + name):
                args.append("--with-{0}={1}".format(name, self.spec[name].prefix))
            else:
                args.append("--with-{0}=no".format(name))
        args.append("--with-sodium={0}".format(self.spec["libsodium"].prefix))
        return args
