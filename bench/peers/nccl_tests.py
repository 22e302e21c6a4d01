#!/usr/bin/env python3
"""Times programs that print tables like those of nccl-tests, for `chorale bench --peer`.

    chorale bench allreduce --ranks 2 --peer 'other=python3 bench/peers/nccl_tests.py FOLDER'

FOLDER has the programs, with the names that nccl-tests gives them, such as all_reduce_perf. They run with all GPUs in one
process, and in graph mode with as many calls in one CUDA graph (-G). The environment is passed on, so that LD_LIBRARY_PATH or
LD_PRELOAD can choose another library with NCCL's interface. Wrong values are counted at their size. Exit status: 0, 2 if a result
is wrong, 3 if a program fails. The other arguments and the output are those of every peer (docs/benchmarks.md).
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

import peer_arguments

PROGRAMS = {"allreduce": "all_reduce_perf", "allgather": "all_gather_perf", "reducescatter": "reduce_scatter_perf",
            "alltoall": "alltoall_perf", "broadcast": "broadcast_perf", "reduce": "reduce_perf"}
TYPES = {"i8": "int8", "u8": "uint8", "i32": "int32", "u32": "uint32", "i64": "int64", "u64": "uint64", "f16": "half",
         "f32": "float", "f64": "double", "bf16": "bfloat16", "fp8_e4m3": "f8e4m3", "fp8_e5m2": "f8e5m2"}
WRONG, DID_NOT_RUN = 2, 3


def fail(text, status=DID_NOT_RUN):
    print(f"nccl_tests.py: {text}", file=sys.stderr, flush=True)
    sys.exit(status)


def ranges_of(sizes):
    """Returns the sizes as ranges (begin, end, factor): one range, if each size is the same multiple of the one before."""
    factors = {(after // before, after % before) for before, after in zip(sizes, sizes[1:])}
    if len(factors) == 1:
        (factor, rest), = factors
        if rest == 0 and factor > 1:
            return [(sizes[0], sizes[-1], factor)]
    return [(size, size, 2) for size in sizes]


def times_of(table):
    """Returns (bytes, place, us, wrong) of each line of a table."""
    times = []
    for line in table.splitlines():
        words = line.split()
        # size, count, type, redop, root; then time, algbw, busbw, #wrong twice
        if len(words) < 13 or not words[0].isdigit():
            continue
        for place, at in (("out-of-place", 5), ("in-place", 9)):
            wrong = int(float(words[at + 3])) if re.fullmatch(r"[\d.]+", words[at + 3]) else 0
            times.append((int(words[0]), place, float(words[at]), wrong))
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    peer_arguments.declare(parser)
    arguments = parser.parse_args()
    pathlib.Path(arguments.output).touch()
    if arguments.collective not in PROGRAMS or arguments.dtype not in TYPES:
        return
    program = arguments.folder / PROGRAMS[arguments.collective]
    if not program.exists():
        fail(f"there is no {program}")
    any_wrong = False
    with open(arguments.output, "w") as lines:
        for mode in arguments.modes:
            for begin, end, factor in ranges_of(arguments.bytes):
                command = [program, "-g", arguments.ranks, "-b", begin, "-e", end, "-f", factor, "-d", TYPES[arguments.dtype],
                           "-o", "sum", "-w", 2, "-c", 1]
                # A graph is launched once per turn, and a call in it is one of `calls`.
                command += ["-n", arguments.calls, "-G", 5] if mode == "graph" else ["-n", arguments.calls]
                done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
                if done.returncode:
                    fail(f"{' '.join(map(str, command))} ended with status {done.returncode}: "
                         f"{(done.stderr or done.stdout).strip()[-300:]}")
                for size, place, us, wrong in times_of(done.stdout):
                    any_wrong |= wrong != 0
                    # Sizes are rounded down to whole elements of every part.
                    if size in arguments.bytes and us > 0:
                        print(json.dumps({"bytes": size, "mode": mode, "place": place, "us": us, "wrong": wrong}), file=lines)
    if any_wrong:
        fail("a result is wrong", WRONG)


if __name__ == "__main__":
    main()
