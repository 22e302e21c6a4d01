#!/usr/bin/env python3
"""Checks that a forward() that forward_tiles() cannot call does not compile, instead of being ignored, and that the
compiler says what it must be.

    wrong_hooks.py COMPILER REPOSITORY"""

import os
import subprocess
import sys

INCLUDE = "#include <chorale/device.hpp>\n"
HOOK = """namespace case_%d {
using namespace chorale;
struct Hook {
  %s
  template <class X>
  void consume(const Ctx<X>&, const Vector<float>&) const {}
};
Stop use(const Group& group, const Endpoint& from, const Endpoint& to, const Leg& leg) {
  return forward_tiles<float>(group, from, to, leg, Hook{});
}
}
"""
TEMPLATE = "template <class X> "
RIGHT = [
    TEMPLATE + "Vector<float> forward(const Ctx<X>&, const Vector<float>& v) const { return v; }",
    "Vector<float> forward(const Ctx<>&, Vector<float> v) const { return v; }",
    "Vector<float> forward(const Ctx<None>&, const Vector<float>& v) const { return v; }",
    "template <class X, class V> V forward(const X&, const V& v) const { return v; }",
    "",
]
WRONG = {
    "writes what it is given": TEMPLATE + "Vector<float> forward(const Ctx<X>&, Vector<float>& v) const { return v; }",
    "is not const": TEMPLATE + "Vector<float> forward(const Ctx<X>&, const Vector<float>& v) { return v; }",
    "takes another type": TEMPLATE + "Vector<double> forward(const Ctx<X>&, const Vector<double>& v) const { return v; }",
    "takes another context": "Vector<float> forward(const Ctx<int>&, const Vector<float>& v) const { return v; }",
    "gives another type": TEMPLATE + "double forward(const Ctx<X>&, const Vector<float>&) const { return 0; }",
    "gives nothing": TEMPLATE + "void forward(const Ctx<X>&, const Vector<float>&) const {}",
    "is private": "private: Vector<float> forward(const Ctx<>&, const Vector<float>& v) const { return v; } public:",
    "is no function": "int forward = 0;",
}


def compiled(compiler, root, source):
    run = subprocess.run(
        [compiler, "-std=c++17", "-fsyntax-only", "-x", "c++", "-I" + os.path.join(root, "compiler/include"),
         "-I" + os.path.join(root, "executor/include"), "-"],
        input=source, capture_output=True, text=True, check=False)
    return run.returncode == 0, run.stderr


def main():
    compiler, root = sys.argv[1:]
    wrong = 0
    good, said = compiled(compiler, root, INCLUDE + "".join(HOOK % case for case in enumerate(RIGHT)))
    if not good:
        print("what is right does not compile: " + said)
        wrong = 1
    for name, member in WRONG.items():
        good, said = compiled(compiler, root, INCLUDE + HOOK % (0, member))
        if good or "a hook's forward() is: Pack<T" not in said:
            print(f"{name}: {'compiles' if good else 'another error: ' + said}")
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
