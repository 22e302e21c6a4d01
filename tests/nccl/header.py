#!/usr/bin/env python3
"""Compares the tables of bindings/nccl with NVIDIA's nccl.h: header.py C++-COMPILER FOLDER_OF_NCCL_H

header.cpp compares what both have. This script also finds what only NVIDIA's header has.
"""
import pathlib
import re
import sys

import table

# These macros are no integers. The members' initial values in abi.def have what is in them.
OTHER_MACROS = {"H_", "SUFFIX", "VERSION", "COMM_NULL", "CONFIG_UNDEF_PTR", "UNDEF_FLOAT", "CONFIG_INITIALIZER", "SIM_INFO_INITIALIZER"}


def main():
    compiler, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    header = (folder / "nccl.h").read_text()
    version = re.search(r"^#define NCCL_VERSION_CODE (\d+)", header, re.M).group(1)
    expected = dict(table.values("CONSTANT"))["VERSION_CODE"]
    if version != expected:
        print(f"skipped: nccl.h in {folder} has version {version}, and the tables describe {expected}")
        sys.exit(77)
    table.run([compiler, "-std=c++20", "-fsyntax-only", f"-I{table.ROOT}", "-isystem", folder, table.ROOT / "tests/nccl/header.cpp"])

    header = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    found = {
        "functions": set(re.findall(r"\b(nccl[A-Z]\w+)\s*\(", header)),
        "constants": set(re.findall(r"^#define NCCL_(\w+)", header, re.M)) - OTHER_MACROS,
        "enumerators": set(re.findall(r"\b(nccl[A-Z]\w+)\s*=", header)) - {"ncclNumOps_dummy"},
        "structs": set(re.findall(r"^typedef struct (\w+_v\d+)", header, re.M)),
    }
    ours = {
        "functions": {row.name for row in table.functions() if row.header == "nccl"},
        "constants": {name for name, _ in table.values("CONSTANT")},
        "enumerators": {name for kind in ("RESULT", "OPERATOR", "TYPE", "RESIDENCE") for name, _ in table.values(kind)},
        "structs": {"ncclConfig_v22800", "ncclSimInfo_v22200"},
    }
    for what, names in found.items():
        if names != ours[what] or not names:
            table.fail(f"{what} only in nccl.h: {names - ours[what]}; only in our tables: {ours[what] - names}")
        print(len(names), what, "agree")
    device = "".join(path.read_text() for path in sorted((folder / "nccl_device").glob("*.h")))
    names = set(re.findall(r"^NCCL_EXTERN_C __host__ .*?\b(nccl\w+)\(", device, re.M))
    listed = {row.name for row in table.functions() if row.header == "device"}
    if names != listed or not names:
        table.fail(f"functions only in nccl_device.h: {names - listed}; only in our table: {listed - names}")
    print(len(names), "functions of nccl_device.h agree")


main()
