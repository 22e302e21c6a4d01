#!/usr/bin/env python3
"""Kernels on a reserved fabric do not compile, whatever they use of it, and the compiler says what is missing.

    reserved_fabric.py COMPILER REPOSITORY"""

import os
import subprocess
import sys

CALLS = {
    "stage": "F::stage(e, 0);",
    "land": "F::land(e, 0);",
    "put": "F::put(region, 0, values);",
    "get": "F::template get<float>(region, 0);",
    "signal": "F::signal(group, e, 0, 16, 0, deadline);",
    "wait": "F::wait(group, e, 16, deadline);",
    "signal_free": "F::signal_free(group, e, 16, deadline);",
    "wait_free": "F::wait_free(group, e, 16, deadline);",
    "drain": "F::drain(group, e, deadline);",
}
SOURCE = """#include <chorale/device.hpp>
using namespace chorale;
template <class F>
void use(const Group& group, const Endpoint& e, const Deadline& deadline, char* region, Vector<float> values) {
  (void)group, (void)e, (void)deadline, (void)region, (void)values;
  %s
}
template void use<%s>(const Group&, const Endpoint&, const Deadline&, char*, Vector<float>);
"""
TILES = "Leg leg; send_tiles<float, F>(group, e, leg, CopyProduce{}, deadline);"


def compiled(compiler, root, source):
    run = subprocess.run(
        [compiler, "-std=c++17", "-fsyntax-only", "-x", "c++", "-I" + os.path.join(root, "compiler/include"),
         "-I" + os.path.join(root, "executor/include"), "-"],
        input=source, capture_output=True, text=True, check=False)
    return run.returncode == 0, run.stderr


def main():
    compiler, root = sys.argv[1:]
    wrong = 0
    good, said = compiled(compiler, root, SOURCE % (" ".join(CALLS.values()) + TILES, "Direct"))
    if not good:
        print("the same on a fabric that is built does not compile:\n" + said)
        wrong = 1
    for name, call in CALLS.items():
        good, said = compiled(compiler, root, SOURCE % (call, "Reserved"))
        if good or f"this fabric is reserved: it has no {name}()" not in said:
            print(f"{name}: {'compiles' if good else 'another error: ' + said}")
            wrong = 1
    good, said = compiled(compiler, root, SOURCE % (TILES, "Reserved"))
    if good or "this fabric is reserved" not in said:
        print("send_tiles: " + ("compiles" if good else said))
        wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
