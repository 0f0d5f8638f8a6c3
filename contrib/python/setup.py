"""A wheel that carries rondo's libnccl.so.2 and librondo, laid out as in a prefix, so that the one finds the other.

    make install DESTDIR=/tmp/stage && RONDO_STAGE=/tmp/stage pip wheel --no-deps contrib/python

RONDO_STAGE is a prefix, or a DESTDIR, into which rondo was installed. The wheel serves every Python of version 3 on this
machine's kind of system; hwloc and a shared libsodium, if rondo was built with them, must be there where it runs, and
UCX where a job spans nodes.
"""
import glob
import os
import shutil
import subprocess

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # older setuptools leave it to the package wheel
    from wheel.bdist_wheel import bdist_wheel


def find(name):
    stage = os.environ.get("RONDO_STAGE")
    if not stage:
        raise SystemExit("RONDO_STAGE must name the folder into which rondo was installed, see contrib/python/setup.py")
    found = glob.glob(os.path.join(stage, "**", name), recursive=True)
    if not found:
        raise SystemExit("there is no {0} below RONDO_STAGE={1}: make install there first".format(name, stage))
    return found[0]


def version():
    name = find("rondo.pc")
    with open(name) as file:
        return next(line.split()[1] for line in file if line.startswith("Version:"))


class WithLibraries(build_py):
    def run(self):
        super().run()
        lib = os.path.join(self.build_lib, "rondo_nccl", "lib")
        os.makedirs(os.path.join(lib, "rondo"), exist_ok=True)
        for name, folder in (("librondo.so.1", lib), ("libnccl.so.2", os.path.join(lib, "rondo"))):
            copy = shutil.copy(find(name), os.path.join(folder, name))
            if shutil.which("strip"):
                subprocess.call(["strip", "--strip-unneeded", copy])


class AnyPython3(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class Binary(Distribution):
    def has_ext_modules(self):
        return True


setup(
    name="rondo-nccl",
    version=version(),
    description="rondo's libnccl.so.2: NCCL's interface on rondo",
    license="BSD-3-Clause",
    packages=["rondo_nccl"],
    python_requires=">=3.7",
    distclass=Binary,
    cmdclass={"build_py": WithLibraries, "bdist_wheel": AnyPython3},
)
