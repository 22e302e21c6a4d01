#!/usr/bin/env python3
"""Tests the installed C API from outside: test.py BUILD_DIR C++-COMPILER

It checks the library's exports and dependencies, programs in C99 by find_package() and by pkg-config, ctypes, and
the example of docs/c-api.md.
"""
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
# The library may need these at run time: C and C++, and the libraries that Chorale is built from.
MAY_NEED = ("linux-vdso", "ld-linux", "libc", "libm", "libdl", "librt", "libpthread", "libgcc_s", "libstdc++", "libspdlog", "libfmt",
            "libboost_context", "libboost_program_options", "libpugixml", "libsodium")


def fail(words):
    print("FAILED:", words)
    sys.exit(1)


def run(*command, **options):
    """Returns the output of a command; the test fails if the command does."""
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
                          **options)
    if done.returncode != 0:
        fail(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout}")
    return done.stdout


def declared(header):
    """Returns the names of the header's functions."""
    names = re.findall(r"^CHORALE_API [^(;]*?\b(chorale_\w+)\(", header.read_text(), re.M)
    if len(names) < 30 or len(names) != len(set(names)):
        fail(f"the header declares {names}")
    return set(names)


def check_exports(library, header):
    """Checks that the library exports exactly what the header declares."""
    symbols = run("nm", "-D", "--defined-only", library).splitlines()
    exported = {line.split()[-1].split("@")[0] for line in symbols}
    if exported != declared(header):
        fail(f"declared and not exported: {declared(header) - exported}; exported and not declared: {exported - declared(header)}")


def check_needs(library):
    needed = re.findall(r"^\s*(\S+)", run("ldd", library), re.M)
    more = [name for name in needed if pathlib.Path(name).name.split(".so")[0].split(".")[0] not in MAY_NEED and
            not pathlib.Path(name).name.startswith("ld-linux")]
    if more or not needed:
        fail(f"{library} needs {more}, of {needed}")


def check_calls(header):
    """Checks that each function is called with success and, if it has a status, with an error."""
    text = "".join(source.read_text() for source in HERE.glob("*.c"))
    with_status = set(re.findall(r"^CHORALE_API chorale_status (chorale_\w+)\(", header.read_text(), re.M))
    right = set(re.findall(r"\bOK\(\s*(chorale_\w+)\(", text))
    wrong = set(re.findall(r"\bFAILS\(\s*CHORALE_\w+,\s*\"(?:[^\"\\]|\\.)*\",\s*(chorale_\w+)\(", text))
    others = {name for name in declared(header) - with_status if name + "(" not in text}
    if with_status - right or with_status - wrong or others:
        fail(f"not called with success: {with_status - right}; not with an error: {with_status - wrong}; not at all: {others}")


def c_compiler(compiler):
    """Returns the C compiler that belongs to a C++ compiler."""
    path = pathlib.Path(compiler)
    return str(path.with_name(path.name.replace("clang++", "clang").replace("g++", "gcc").replace("c++", "cc")))


def check_programs(prefix, work, compiler, plan, environment):
    """Builds the C program in two ways and runs it."""
    cmake_build = work / "build"
    run("cmake", "-S", HERE, "-B", cmake_build, "-G", "Ninja", f"-DCMAKE_C_COMPILER={compiler}", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("ninja", "-C", cmake_build)
    print(run(cmake_build / "api", plan).strip(), "- by find_package()")

    if not shutil.which("pkg-config"):
        print("skipped: the program by pkg-config, which this machine lacks")
        return
    where = next(prefix.glob("lib*/**/chorale.pc")).parent
    flags = run("pkg-config", "--cflags", "--libs", "chorale", env={**environment, "PKG_CONFIG_PATH": str(where)}).split()
    run(compiler, "-std=c99", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *sorted(HERE.glob("*.c")), "-o",
        work / "api", "-pthread", *flags)
    print(run(work / "api", plan, env=environment).strip(), "- by pkg-config")


def check_example(work, environment):
    """Runs the script of the page, at a free port."""
    block = re.search(r"^```python\n(.*?)^```$", (ROOT / "docs/c-api.md").read_text(), re.M | re.S).group(1)
    if block.count("29517") != 1:
        fail("docs/c-api.md: the example has another port")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = work / "example.py"
    script.write_text(block.replace("29517", str(port)))
    run(sys.executable, script, env=environment)


def main():
    build, compiler = pathlib.Path(sys.argv[1]), c_compiler(sys.argv[2])
    work = pathlib.Path(tempfile.mkdtemp())
    try:
        prefix = work / "installed"
        run("cmake", "--install", build, "--prefix", prefix)
        library, header = next(prefix.glob("lib*/**/libchorale.so")), prefix / "include/chorale/chorale.h"
        environment = {**os.environ, "LD_LIBRARY_PATH": str(library.parent)}
        check_exports(library, header)
        check_needs(library)
        check_calls(header)
        check_programs(prefix, work, compiler, prefix / "share/chorale/plans/shipped/allreduce_ring_2.json", environment)
        print(run(sys.executable, HERE / "ranks.py", library).strip())
        check_example(work, environment)
        print("the example of docs/c-api.md")
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
