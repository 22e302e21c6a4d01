#!/usr/bin/env python3
"""Tests libnccl.so.2 from outside: programs.py LIBRARY C++-COMPILER [FOLDER_OF_NCCL_H]

It checks what the library exports, programs in C that link it, and a client that uses ctypes.
"""
import os
import pathlib
import re
import sys
import tempfile

import table

HERE = pathlib.Path(__file__).resolve().parent


def c_compiler(compiler):
    """Returns the C compiler that belongs to a C++ compiler."""
    path = pathlib.Path(compiler)
    return str(path.with_name(path.name.replace("clang++", "clang").replace("g++", "gcc").replace("c++", "cc")))


def check_exports(library):
    """Checks that the library has the symbols of NCCL, each with its twin, in NCCL's form."""
    symbols = {}
    for line in table.run(["nm", "-D", "--defined-only", "--with-symbol-versions", library]).splitlines():
        address, kind, name = line.split()
        symbols[name] = (address, kind)
    names = {row.name for row in table.functions()}
    expected = names | {"p" + name for name in names} | {"chorale_nccl_calls"}
    # NCCL's symbols have no versions, so a symbol with an @ would be another name.
    if set(symbols) != expected:
        table.fail(f"missing: {expected - set(symbols)}; not in functions.def: {set(symbols) - expected}")
    for name in names:
        (address, kind), (twin_address, twin_kind) = symbols[name], symbols["p" + name]
        if address != twin_address or (kind, twin_kind) != ("W", "T"):
            table.fail(f"{name} is {kind} at {address}, its twin {twin_kind} at {twin_address}: NCCL has W and T at one address")
    if "[libnccl.so.2]" not in table.run(["readelf", "-d", library]):
        table.fail("the library's own name is not libnccl.so.2")
    print(len(names), "functions and their twins are exported")


def header():
    """Returns a header in C, written from the tables."""
    lines = ["#include <limits.h>", "#include <stddef.h>", "#include <stdint.h>", "typedef struct CUstream_st* cudaStream_t;",
             "typedef struct ncclComm* ncclComm_t;", "typedef struct ncclWindow_vidmem* ncclWindow_t;",
             "typedef struct { char internal[128]; } ncclUniqueId;"]
    for kind, name in (("RESULT", "ncclResult_t"), ("OPERATOR", "ncclRedOp_t"), ("TYPE", "ncclDataType_t"),
                       ("RESIDENCE", "ncclScalarResidence_t")):
        lines.append(f"typedef enum {{ {', '.join(f'{one} = {value}' for one, value in table.values(kind))} }} {name};")
    for kind, name, macro in (("CONFIG", "ncclConfig_t", "NCCL_CONFIG_INITIALIZER"),
                              ("SIMULATION", "ncclSimInfo_t", "NCCL_SIM_INFO_INITIALIZER")):
        rows = table.members(kind)
        lines.append(f"typedef struct {{ {' '.join(f'{type} {one};' for type, one, _ in rows)} }} {name};")
        lines.append(f"#define {macro} {{ {', '.join(initial for _, _, initial in rows)} }}")
    for row in table.functions():
        if row.header == "nccl":
            for name in (row.name, "p" + row.name):
                lines.append(f"{row.result} {name}({row.parameters or 'void'});")
    return "\n".join(lines) + "\n"


def check_program(library, compiler, include, folder, environment):
    program = folder / "program"
    table.run([compiler, "-Wall", "-Wextra", HERE / "program.c", "-isystem", include, library, "-o", program])
    said = table.run([program], env=environment)
    if not said.startswith("version 22809: ncclAllReduce: comm is null"):
        table.fail(f"the program said {said}")
    if str(library.parent) not in table.run(["ldd", program], env=environment):
        table.fail("the program does not find the library by its name in the loader's path")


def check_ctypes(library, environment):
    said = table.run([sys.executable, HERE / "ctypes_client.py", library, "cpu"], env=environment).splitlines()
    right = len(said) == 2 and said[0] == "version 2.28.9" and re.fullmatch(
        r"the results are right; NCCL error: invalid argument .*: ncclAllReduce: datatype 99 does not exist", said[1])
    if not right:
        table.fail("the client by ctypes said\n" + "\n".join(said))


def main():
    library, compiler = pathlib.Path(sys.argv[1]), c_compiler(sys.argv[2])
    library = library.parent / "libnccl.so.2"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library.parent)}
    environment.pop("CHORALE_NCCL_FALLBACK", None)
    environment["CHORALE_BACKEND"] = "cpu"
    check_exports(library)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "nccl.h").write_text(header())
        check_program(library, compiler, folder, folder, environment)
        print("a C program runs that was built with a header made from the tables")
        if len(sys.argv) > 3:
            check_program(library, compiler, pathlib.Path(sys.argv[3]), folder, environment)
            print("a C program runs that was built with NVIDIA's header")
        else:
            print("skipped: the program with NVIDIA's header, which this machine lacks")
    check_ctypes(library, environment)
    print("a client by ctypes runs")


main()
