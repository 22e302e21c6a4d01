#!/usr/bin/env python3
"""Times PyTorch's collectives on symmetric memory, for `chorale bench --peer`.

    chorale bench allreduce --ranks 2 --peer 'PyTorch=python3 bench/peers/torch_symmetric.py'

All operations of torch.ops.symm_mem that do a collective between GPUs of one host are timed: one-shot and two-shot
all-reduces, reduce_scatter_out, and the operations by copy engines (_low_contention_all_gather and
_low_contention_reduce_scatter), which cannot be captured in graphs. An operation that PyTorch does not have, or that refuses a size, is left out. Inputs are in
symmetric memory, as the operations need. Before and after it is timed, each result is compared with a sum or a list that the
program computes itself.

NVLink multicast stays off, so the operations whose names begin with multimem are never called. Exit status: 0, 2 if a result is
wrong, 3 if it could not run. The other arguments and the output are those of every peer (docs/benchmarks.md).
"""
import argparse
import json
import pathlib
import sys

import peer_arguments

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "common"))
from torch_ranks import WRONG, captured, declare_rank, fail, join, leave, no_multicast, repeat, run, time_us

ROUNDS, WARM_UP = 5, 2
LONGEST_US = 20000  # of the calls that are timed at once
TYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32"}
OUT_OF_PLACE, IN_PLACE = "out-of-place", "in-place"


class Buffers:
    """Has the memory of all operations. Rank r's element i is (r + i) % 3, so every type holds all sums exactly."""

    def __init__(self, torch, dist, dtype, most_bytes, rank, ranks):
        import torch.distributed._symmetric_memory as symmetric
        self.torch, self.ranks, self.rank = torch, ranks, rank
        self.dtype = getattr(torch, TYPES[dtype])
        self.group = dist.group.WORLD.group_name
        elements = most_bytes // self.dtype.itemsize
        self.all_in = symmetric.empty(elements, dtype=self.dtype, device="cuda")
        symmetric.rendezvous(self.all_in, self.group)
        self.all_out = torch.empty(elements, dtype=self.dtype, device="cuda")

    def pattern(self, rank, elements):
        numbers = self.torch.arange(elements, device="cuda", dtype=self.torch.int32)
        return ((numbers + rank) % 3).to(self.dtype)

    def total(self, elements):
        return sum(self.pattern(rank, elements).float() for rank in range(self.ranks)).to(self.dtype)


class Operation:
    """Has one operation at one size. fill() gives the input, call() runs it, and result() and expected() are compared."""

    def __init__(self, name, place, buffers, bytes):
        self.name, self.place, self.buffers = name, place, buffers
        self.elements = bytes // buffers.dtype.itemsize
        self.part = self.elements // buffers.ranks
        self.returned = None
        self.given = self.part if name == "_low_contention_all_gather" else self.elements
        self.input = buffers.all_in[:self.given]
        self.output = buffers.all_out[:self.part if "scatter" in name else self.elements]

    def call(self):
        operation = getattr(self.buffers.torch.ops.symm_mem, self.name)
        group = self.buffers.group
        # The operations by copy engines run in other streams until they are waited for.
        wait = self.buffers.torch.ops._c10d_functional.wait_tensor
        if self.name == "_low_contention_all_gather":
            self.returned = wait(operation(self.input, group))
        elif self.name == "_low_contention_reduce_scatter":
            self.returned = wait(operation(self.input, "sum", group))
        elif self.name == "reduce_scatter_out":
            self.returned = operation(self.input, group, False, self.output)
        elif self.place == IN_PLACE:
            self.returned = operation(self.input, "sum", group)
        else:
            self.returned = operation(self.input, "sum", group, self.output)

    def fill(self):
        self.input.copy_(self.buffers.pattern(self.buffers.rank, self.given))

    def expected(self):
        buffers = self.buffers
        if "all_gather" in self.name:
            return buffers.torch.cat([buffers.pattern(rank, self.given) for rank in range(buffers.ranks)])
        total = buffers.total(self.elements)
        return total[buffers.rank * self.part:][:self.part] if "scatter" in self.name else total

    def wrong(self, dist):
        """Runs once on fresh data. Returns the number of wrong elements of all ranks."""
        synchronize = self.buffers.torch.cuda.synchronize
        synchronize()
        dist.barrier()  # until then peers may read the input of the call before
        self.fill()
        synchronize()
        dist.barrier()
        self.call()
        found = self.returned.reshape(-1)
        wrong = (found != self.expected()).sum() if found.numel() == self.expected().numel() else \
            self.buffers.torch.tensor(self.elements, device="cuda")
        dist.all_reduce(wrong)
        return int(wrong.item())


OPERATIONS = {
    "allreduce": (("one_shot_all_reduce_out", OUT_OF_PLACE), ("two_shot_all_reduce_out", OUT_OF_PLACE),
                  ("two_shot_all_reduce_", IN_PLACE)),
    "allgather": (("_low_contention_all_gather", OUT_OF_PLACE),),
    "reducescatter": (("reduce_scatter_out", OUT_OF_PLACE), ("_low_contention_reduce_scatter", OUT_OF_PLACE)),
}


def time_one(torch, dist, operation, mode, most_calls):
    """Returns the microseconds of a call and the wrong elements."""
    wrong = operation.wrong(dist)
    once = time_us(torch, dist, operation.call, 1, 1, 1)
    calls = max(2, min(most_calls, int(LONGEST_US / once)))
    call = captured(torch, operation.call, calls) if mode == "graph" else lambda: repeat(operation.call, calls)
    us = time_us(torch, dist, call, calls, ROUNDS, WARM_UP)
    return us, wrong + operation.wrong(dist)


def run_rank(arguments):
    torch, dist = join(arguments.rank, arguments.ranks, arguments.port)
    buffers = Buffers(torch, dist, arguments.dtype, max(arguments.bytes), arguments.rank, arguments.ranks)
    any_wrong = False
    lines = open(arguments.output, "w") if arguments.rank == 0 else None
    # Graphs come last, because a capture that fails may leave the streams unusable.
    for mode in sorted(arguments.modes):
        for name, place in OPERATIONS[arguments.collective]:
            if not hasattr(torch.ops.symm_mem, name) or (mode == "graph" and name.startswith("_low_contention")):
                continue
            for bytes in arguments.bytes:
                operation = Operation(name, place, buffers, bytes)
                if operation.part * arguments.ranks != operation.elements or operation.part * buffers.dtype.itemsize % 16:
                    continue
                try:
                    us, wrong = time_one(torch, dist, operation, mode, arguments.calls)
                except RuntimeError as error:  # the same on all ranks: the operation refuses this size
                    if arguments.rank == 0:
                        print(f"{name} at {bytes} bytes: {str(error).splitlines()[0]}", file=sys.stderr, flush=True)
                    torch.cuda.synchronize()
                    break
                any_wrong |= wrong != 0
                if lines:
                    print(json.dumps({"bytes": bytes, "mode": mode, "place": place, "us": us, "wrong": wrong, "by": name}),
                          file=lines, flush=True)
                del operation
    leave(dist)
    if any_wrong:
        fail("a result is wrong", WRONG)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    peer_arguments.declare(parser)
    declare_rank(parser)
    arguments = parser.parse_args()
    no_multicast()
    if arguments.dtype not in TYPES:
        fail(f"PyTorch's operations are not timed with {arguments.dtype}, only with {', '.join(TYPES)}")
    if arguments.collective not in OPERATIONS:
        pathlib.Path(arguments.output).touch()
        return
    run(arguments, run_rank)


if __name__ == "__main__":
    main()
