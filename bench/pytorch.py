#!/usr/bin/env python3
"""Times torch.distributed with Chorale's backend and with NCCL's, in one run, and writes a table in Markdown.

    PYTHONPATH=PREFIX/share/chorale/torch bench/pytorch.py --ranks 2 --bytes 1K,1M,16M --output FILE

The tensors are ordinary ones (torch.empty) and, in one column, those of chorale_torch.empty(). Both backends use the same ordinary
tensors in turn. Every result is compared with one that the program computes itself, before and after it is timed. NVLink multicast
stays off. The last table has the times of the host: a call that is only enqueued, a call that is waited for, an empty kernel that is
waited for, and the first call with an address that is new.

Exit status: 0, 2 if a result is wrong, 3 if it could not run.
"""
import argparse
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "common"))
from torch_ranks import WRONG, captured, declare_rank, fail, join, leave, no_multicast, repeat, run, time_us

ROUNDS, WARM_UP = 5, 2
LONGEST_US = 20000  # of the calls that are timed at once
SUFFIXES = {"K": 10, "M": 20, "G": 30}
HEADINGS = ("collective", "size", "mode", "ordinary us", "empty() us", "NCCL us", "NCCL / ordinary")


def bytes_of(text):
    return int(text[:-1]) << SUFFIXES[text[-1]] if text[-1] in SUFFIXES else int(text)


def words_of(bytes):
    return next((f"{bytes >> shift}{name}" for name, shift in reversed(SUFFIXES.items()) if bytes >= 1 << shift), str(bytes))


def row(cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


class Call:
    """Has one collective on two tensors. Rank r's element i is (r + i) % 3, so that bf16 holds all sums exactly."""

    def __init__(self, torch, dist, name, bytes, make):
        self.torch, self.dist, self.name = torch, dist, name
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        elements = bytes // 2
        part = elements // self.ranks
        self.given = part if name == "allgather" else elements
        self.input = make(self.given)
        self.output = self.input if name == "allreduce" else make(part if name == "reducescatter" else elements)

    def pattern(self, rank):
        numbers = self.torch.arange(self.given, device="cuda", dtype=self.torch.int32)
        return ((numbers + rank) % 3).to(self.torch.bfloat16)

    def expected(self):
        inputs = [self.pattern(rank) for rank in range(self.ranks)]
        if self.name == "allgather":
            return self.torch.cat(inputs)
        if self.name == "alltoall":
            return self.torch.cat([one.chunk(self.ranks)[self.rank] for one in inputs])
        total = sum(one.float() for one in inputs).to(self.torch.bfloat16)
        return total if self.name == "allreduce" else total.chunk(self.ranks)[self.rank]

    def run(self, group):
        if self.name == "allreduce":
            self.dist.all_reduce(self.output, group=group)
        elif self.name == "allgather":
            self.dist.all_gather_into_tensor(self.output, self.input, group=group)
        elif self.name == "reducescatter":
            self.dist.reduce_scatter_tensor(self.output, self.input, group=group)
        else:
            self.dist.all_to_all_single(self.output, self.input, group=group)

    def wrong(self, group):
        """Runs once on fresh data. Returns the number of wrong elements of all ranks."""
        self.input.copy_(self.pattern(self.rank))
        self.run(group)
        wrong = (self.output != self.expected()).sum()
        self.dist.all_reduce(wrong)
        return int(wrong.item())

    def time(self, group, mode, most_calls):
        """Returns the microseconds of a call on the slowest rank and the number of wrong elements."""
        wrong = self.wrong(group)
        one = lambda: self.run(group)
        once = time_us(self.torch, self.dist, one, 1, 1, 2)
        calls = max(2, min(most_calls, int(LONGEST_US / once)))
        self.input.zero_()  # an all-reduce in place adds to its sum
        call = captured(self.torch, one, calls) if mode == "graph" else lambda: repeat(one, calls)
        us = time_us(self.torch, self.dist, call, calls, ROUNDS, WARM_UP)
        return us, wrong + self.wrong(group)


def median_us(torch, dist, calls):
    """Returns the median time of the calls on the host of the slowest rank. All ranks begin each call together."""
    found = []
    for call in calls:
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        found.append((time.perf_counter() - begin) * 1e6)
    torch.cuda.synchronize()
    slowest = torch.tensor(statistics.median(found), dtype=torch.float64, device="cuda")
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.item()


def host_times(torch, dist, groups):
    """Yields rows with the times of the host, of Chorale and of NCCL."""
    small = torch.zeros(512, dtype=torch.bfloat16, device="cuda")

    def enqueued(group):
        calls = 50
        several = lambda: repeat(lambda: dist.all_reduce(small, group=group), calls)
        return median_us(torch, dist, [several] * 20) / calls

    def waited(group):
        def one():
            dist.all_reduce(small, group=group)
            torch.cuda.synchronize()
        return median_us(torch, dist, [one] * 200)

    def fresh(group, parts):
        """Returns the time of a first call. Each call has the next part of memory."""
        return median_us(torch, dist, [lambda part=part: dist.all_reduce(part, group=group) for part in parts])

    def empty_kernel():
        small.zero_()
        torch.cuda.synchronize()

    names = ("chorale", "nccl")
    yield ("a call of 1K, enqueued", *(f"{enqueued(groups[name]):.2f}" for name in names))
    yield ("a call of 1K, waited for", *(f"{waited(groups[name]):.2f}" for name in names))
    alone = median_us(torch, dist, [empty_kernel] * 200)
    yield ("a memset of 1K, waited for", f"{alone:.2f}", f"{alone:.2f}")
    for size in ("1M", "16M"):
        elements = bytes_of(size) // 2
        found = []
        for name in names:
            known = torch.zeros(elements * 21, dtype=torch.bfloat16, device="cuda")
            parts = known.split(elements)
            fresh(groups[name], parts[:1])
            found.append(f"{fresh(groups[name], parts[1:]):.1f}")
            del known, parts
            torch.cuda.empty_cache()
        yield (f"first call of {size} in a known allocation", *found)
    # Each tensor of 32 MiB is an allocation of its own.
    found = []
    for name in names:
        parts = [torch.zeros(16 << 20, dtype=torch.bfloat16, device="cuda") for _ in range(12)]
        found.append(f"{fresh(groups[name], parts):.1f}")
        del parts
        torch.cuda.empty_cache()
    yield ("first call of 32M in a new allocation", *found)


def run_rank(arguments):
    torch, dist = join(arguments.rank, arguments.ranks, arguments.port)
    import chorale_torch
    groups = {"nccl": dist.group.WORLD, "chorale": dist.new_group(backend="chorale")}
    ordinary = lambda elements: torch.zeros(elements, dtype=torch.bfloat16, device="cuda")
    shared = lambda elements: chorale_torch.empty(elements, dtype=torch.bfloat16, group=groups["chorale"])
    any_wrong = 0
    lines = [row(HEADINGS), row(["--"] * len(HEADINGS))]

    def write():
        if arguments.rank == 0:
            pathlib.Path(arguments.output).write_text("\n".join(lines) + "\n")

    for name in arguments.collectives:
        for bytes in arguments.bytes:
            mine = Call(torch, dist, name, bytes, ordinary)
            made = Call(torch, dist, name, bytes, shared)
            for mode in ("eager", "graph"):
                times = [call.time(groups[group], mode, arguments.calls)
                         for call, group in ((mine, "chorale"), (made, "chorale"), (mine, "nccl"))]
                any_wrong += sum(wrong for _, wrong in times)
                us = [time for time, _ in times]
                marks = [f"{time:.2f}" + (f" ({wrong} wrong)" if wrong else "") for time, wrong in times]
                lines.append(row((name, words_of(bytes), mode, *marks, f"{us[2] / us[0]:.2f}")))
            write()
    lines.extend(["", row(("on the host, us", "Chorale", "NCCL")), row(["--"] * 3)])
    for cells in host_times(torch, dist, groups):
        lines.append(row(cells))
        write()
    leave(dist)
    if any_wrong:
        fail("a result is wrong", WRONG)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    several = lambda text: text.split(",")
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--collectives", type=several, default=["allreduce", "allgather", "reducescatter", "alltoall"])
    parser.add_argument("--bytes", type=lambda text: [bytes_of(word) for word in text.split(",")], required=True)
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--output", required=True)
    declare_rank(parser)
    arguments = parser.parse_args()
    no_multicast()
    run(arguments, run_rank)


if __name__ == "__main__":
    main()
