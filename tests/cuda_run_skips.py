#!/usr/bin/env python3
"""Checks that tests/cuda/run prints a line for what it leaves out: cuda_run_skips.py <tests/cuda/run>

Its GPUs and programs are scripts that only exit with success."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

PROGRAMS = ("memory", "pool", "published", "scale", "schedules", "matrix", "faults", "litmus", "plans", "groups", "tiles", "exchange", "hosts")
PLANS = ("single_node-allreduce__n2.json", "single_node-allreduce__n4.json")


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def script(path, text="exit 0"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def said(folder, pattern):
    """Returns the lines of a run on two GPUs."""
    environment = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}"}
    environment.pop("CUDA_VISIBLE_DEVICES", None)
    done = subprocess.run([folder / "tree/tests/cuda/run", folder / "build", pattern], capture_output=True, text=True,
                          timeout=60, env=environment)
    check(done.returncode == 0, f"exit {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout.splitlines()


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        script(folder / "bin/nvidia-smi", "echo 'GPU 0: one'; echo 'GPU 1: another'")
        script(folder / "bin/compute-sanitizer")
        for program in PROGRAMS:
            script(folder / f"build/tests/cuda_{program}")
        script(folder / "build/tools/chorale")
        script(folder / "build/bindings/c/libchorale.so.1")
        (folder / "tree/tests/cuda").mkdir(parents=True)
        shutil.copy(sys.argv[1], folder / "tree/tests/cuda/run")

        lines = said(folder, "of MSCCL")
        check("cuda_plans, of MSCCL++, 2 ranks: skipped, ../shared/mscclpp-plans is not there" in lines, lines)
        check("memcheck of cuda_plans, of MSCCL++: skipped, ../shared/mscclpp-plans is not there" in lines, lines)
        check(not any("MSCCL" in line for line in said(folder, "cuda_pool")), "what nobody asked for has a line")

        for plan in PLANS:
            (folder / "shared/mscclpp-plans").mkdir(parents=True, exist_ok=True)
            (folder / "shared/mscclpp-plans" / plan).touch()
        lines = said(folder, "of MSCCL")
        check(not any("skipped" in line for line in lines), lines)
        check(any(line.startswith("cuda_plans, of MSCCL++, 2 ranks ") and "passed" in line for line in lines), lines)


main()
