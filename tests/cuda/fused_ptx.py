#!/usr/bin/env python3
"""Compiles fused_kernels.cu to PTX. Checks that the kernels of chorale/fused move 16 bytes at a time, keep their
values in registers, and have the memory orders of the device library.

    fused_ptx.py NVCC REPOSITORY [ARCH]

Exit status 0 and one line per check if all hold, 1 otherwise. ARCH is sm_90 unless given."""

import re
import sys

import ptx

STORES = r"\bst\.(?!param|local|shared)[\w.]+"
LOADS = r"\bld\.(?!param|local|shared)[\w.]+"
UNIT = r"\bld(?:\.global)?\.v4\.[ub]32\b"
STORED_UNIT = r"\bst(?:\.global)?\.v4\.[ub]32\b"
PACKET = "st.relaxed.sys.global.v2.b64"


def units_in_flight(kernel):
    """Returns the largest number of loads of 16 bytes between two uses of loaded values, stores or shuffles."""
    parts = re.split(r"\bcvt\.(?!u32\.u64|u64\.u32)|\bshfl\.|\bfma\.|\bmul\.(?:rn\.)?f32|\badd\.(?:rn\.)?f32|" + STORES, kernel)
    return max(ptx.count(part, UNIT) for part in parts)


def checks(text, resources):
    """Yields pairs of a property that must hold and whether it does."""
    of = ptx.kernels(text)
    yield "no load through the read-only cache: peers write what we read", not re.search(
        r"\bld\.global(\.\w+)*\.nc\b|\bldu\.", text)
    yield "no volatile access", not re.search(r"\b(ld|st)\.volatile", text)
    yield "every atomic operation is system-wide", not re.search(r"(?<![.\w])(atom|red)\.(?!\w+\.\w+\.sys\.)", text)
    yield "every ordered access is system-wide", not re.search(r"\b(ld|st)\.(relaxed|acquire|release)\.(?!sys\.)", text)
    for name, kernel in of.items():
        registers, stack = resources[name]
        yield name + " keeps everything in registers", stack == 0
        yield name + " fits 512 threads a block", registers <= 128
        yield name + " loads 16 bytes at a time", re.search(UNIT, kernel) is not None or name == "transpose_packets"
        if "packets" in name and "twice_f32" not in name:
            yield name + " sends packets by vector stores", PACKET in re.findall(STORES, kernel)
        if "window" in name:
            yield name + " waits with acquire, and adds with release", (
                "ld.acquire.sys.global.u64" in kernel and "red.add.release.sys.global.u64" in kernel)
            yield name + " stores 16 bytes at a time", re.search(STORED_UNIT, kernel) is not None or name == "norm_window"
    for name in "reduce_window_e4m3", "reduce_window_e5m2", "reduce_window_int8":
        yield name + " asks for the codes of four ranks, of two units, before it adds", units_in_flight(of[name]) >= 8
    for name in "gather_window_e4m3", "gather_window_int8", "permute_window", "permute_window_f32":
        yield name + " asks for four units before it uses one", units_in_flight(of[name]) >= 4
    for name, kernel in of.items():
        if name.startswith(("reduce_", "gather_")):
            yield name + " multiplies and adds in two steps, as the CPU does", (
                re.search(r"\bmul\.rn\.f32", kernel) is not None)


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    arch = sys.argv[3] if len(sys.argv) == 4 else "sm_90"
    text, resources = ptx.compile_ptx(sys.argv[1], sys.argv[2], arch, "fused_kernels.cu", "c++20",
                                      ["-maxrregcount", "128"])
    failed = False
    for name, holds in checks(text, resources):
        print("ok    " if holds else "FAILED", name)
        failed |= not holds
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
