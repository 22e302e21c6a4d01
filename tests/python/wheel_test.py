#!/usr/bin/env python3
"""Builds the wheel from a build folder, and uses it in a fresh virtual environment: wheel_test.py CMAKE BUILD"""
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_BYTES = 20 << 20  # without CUDA kernels
USE = """
import pathlib, subprocess, sys, numpy, chorale
from chorale.language import *
assert pathlib.Path(chorale.__file__).is_relative_to(sys.prefix), chorale.__file__
assert pathlib.Path(chorale.plans_folder()).is_relative_to(sys.prefix), chorale.plans_folder()
with CollectiveProgram("gather", AllGather(8, 1, False)) as program:
    for rank in range(8):
        me = Rank(rank)
        mine = me.get_input_buffer()[0]
        me.copy(me.get_output_buffer()[rank], mine, tb=0)
        peers = [MemoryChannel(peer, rank) for peer in range(8) if peer != rank]
        for peer in peers:
            peer.signal(tb=0, relaxed=True)
        for peer in peers:
            peer.wait(tb=0, relaxed=True)
            peer.put(Rank(peer.dst_rank).get_output_buffer()[rank], mine, tb=0)
            peer.signal(tb=0)
        for peer in peers:
            peer.wait(tb=0)
plan = program.compile(certify=True)
inputs = [numpy.full(100, rank, numpy.float32) for rank in range(8)]
for output in plan.run(inputs):
    assert (output == numpy.concatenate(inputs)).all()
assert plan.simulate(1 << 20).us > 0
assert chorale.TunedPlans(8).choose("allreduce", 1 << 20).name
print(plan)
"""


def fail(message):
    sys.exit(f"FAILED: {message}")


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True, **options)
    if done.returncode:
        fail(f"{' '.join(map(str, command))} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def check_wheel(wheel, with_kernels):
    names = zipfile.ZipFile(wheel).namelist()
    for part in ("chorale/__init__.py", "chorale/_chorale.pyi", "chorale/py.typed", "chorale/bin/chorale",
                 "chorale/lib/libchorale.so.1", "chorale/include/chorale/dsl.hpp",
                 "chorale/share/chorale/plans/shipped/allreduce_ring_8.json"):
        if part not in names:
            fail(f"{wheel.name} lacks {part}")
    if "chorale/_build.py" in names:
        fail(f"{wheel.name} has the paths of its build folder")
    if not with_kernels and wheel.stat().st_size > MOST_BYTES:
        fail(f"{wheel.name} has {wheel.stat().st_size} bytes, more than {MOST_BYTES}")


def check_archive(folder, backend):
    name = backend.build_sdist(folder)
    with tarfile.open(pathlib.Path(folder) / name) as archive:
        members = archive.getnames()
    for part in "pyproject.toml", "PKG-INFO", "bindings/python/backend.py", "CMakeLists.txt", "compiler/CMakeLists.txt":
        if f"{name.removesuffix('.tar.gz')}/{part}" not in members:
            fail(f"{name} lacks {part}")


def main():
    _, _, build = sys.argv
    sys.path.insert(0, str(ROOT / "bindings" / "python"))
    import backend
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHON")}
    with tempfile.TemporaryDirectory() as folder:
        check_archive(folder, backend)
        start = time.monotonic()
        wheel = pathlib.Path(folder) / backend.build_wheel(folder, {"build-dir": build, "jobs": "2"})
        cache = (pathlib.Path(build) / "CMakeCache.txt").read_text()
        check_wheel(wheel, "CHORALE_CUDA:BOOL=ON" in cache)
        made = time.monotonic()
        venv = pathlib.Path(folder) / "venv"
        # NumPy is that of the system, because the test needs no network.
        done = subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", str(venv)], text=True, capture_output=True)
        if done.returncode:
            print(f"skipped: the wheel in a virtual environment, {done.stdout.strip().splitlines()[-1:]}")
            sys.exit(77)
        run(venv / "bin" / "pip", "install", "--no-index", "--no-deps", wheel, env=environment)
        ready = time.monotonic()
        out = run(venv / "bin" / "python3", "-c", USE, env=environment, cwd=folder)
        if "allgather of 8 ranks" not in out:
            fail(out)
        source = pathlib.Path(folder) / "mine.py"
        source.write_text(USE.split("plan = ")[0].replace('assert pathlib', '#'))
        command = venv / "bin" / "chorale"
        run(command, "compile", source, "-o", "mine.json", env=environment, cwd=folder)
        if "yes" not in run(command, "run", "mine.json", "--bytes", "64K", "--no-times", env=environment, cwd=folder):
            fail("the command does not run the plan")
        cpp = ROOT / "plans" / "allreduce_ring.cpp"
        run(command, "compile", cpp, "--set", "ranks=2", "-o", "ring.json", env=environment, cwd=folder)
        run(command, "list", env=environment, cwd=folder)
        print(f"wheel of {wheel.stat().st_size} bytes: {made - start:.1f} s to make, {ready - made:.1f} s to install, "
              f"{time.monotonic() - ready:.1f} s to use")


main()
