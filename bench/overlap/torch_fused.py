#!/usr/bin/env python3
"""Times PyTorch's fused symmetric-memory operations, for bench_overlap.

    torch_fused.py RANKS OPERATION:M,K,N ...        starts one process with one GPU per rank

OPERATION is gather (torch.ops.symm_mem.fused_all_gather_matmul: C[M, N] = all-gather of A[M / RANKS, K], times B[K, N])
or scatter (fused_matmul_reduce_scatter: C[M / RANKS, N] = reduce-scatter of A[M, K / RANKS] B[K / RANKS, N]), in bf16.
It prints one line {"shape": "gather:M,K,N", "us": ..., "how": "eager" or "graph"} per operation. The time is that of one of
ten calls in a row, on the slowest rank, by CUDA events. It is the median of 20 after warming up. Every operation is first
compared with PyTorch's own collective and product. Exit status: 0, 2 if a result is wrong, 3 if it could not run.

It never uses NVLink multicast, so it refuses to run if one of the two switches that turn multicast off has another value.
"""
import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "common"))
from torch_ranks import WRONG, captured, declare_rank, fail, join, leave, no_multicast, repeat, run, time_us

CALLS, ROUNDS, WARM_UP = 10, 20, 5


def parse(word):
    """Splits OPERATION:M,K,N into its parts."""
    try:
        kind, numbers = word.split(":")
        m, k, n = (int(number) for number in numbers.split(","))
    except ValueError:
        fail(f"'{word}' is not OPERATION:M,K,N")
    if kind not in ("gather", "scatter"):
        fail(f"'{kind}' is neither gather nor scatter")
    return kind, m, k, n


class Operation:
    """Has the fused call of one shape, and the same work by a collective and a product."""

    def __init__(self, torch, dist, word, rank, ranks):
        self.torch, self.dist, self.ranks, self.word = torch, dist, ranks, word
        self.kind, m, k, n = parse(word)
        divided = m if self.kind == "gather" else k
        if divided % ranks or m % ranks:
            fail(f"'{word}' cannot be divided among {ranks} ranks")
        torch.manual_seed(1 + rank)
        rows, deep = (m // ranks, k) if self.kind == "gather" else (m, k // ranks)
        make = lambda *shape: torch.randn(shape, dtype=torch.bfloat16, device="cuda")
        self.a, self.b = make(rows, deep), make(deep, n).div_(k**0.5)  # C is about 1
        self.group = dist.group.WORLD.group_name
        # Newer versions may leave out the gathered matrix.
        fused = torch.ops.symm_mem.fused_all_gather_matmul
        arguments = fused.default._schema.arguments
        self.options = {"return_A": False} if any(one.name == "return_A" for one in arguments) else {}

    def fused(self):
        ops = self.torch.ops.symm_mem
        if self.kind == "gather":
            return ops.fused_all_gather_matmul(self.a, [self.b], 0, self.group, **self.options)[1][0]
        return ops.fused_matmul_reduce_scatter(self.a, self.b, "sum", 0, self.group)

    def plain(self):
        torch, dist = self.torch, self.dist
        if self.kind == "gather":
            gathered = torch.empty(self.ranks * self.a.shape[0], self.a.shape[1], dtype=self.a.dtype, device="cuda")
            dist.all_gather_into_tensor(gathered, self.a)
            return gathered @ self.b
        product = self.a @ self.b
        scattered = torch.empty(product.shape[0] // self.ranks, product.shape[1], dtype=product.dtype, device="cuda")
        dist.reduce_scatter_tensor(scattered, product)
        return scattered

    def compare(self):
        """Compares the results. Elements are about 1, sums over the ranks are rounded to bf16, and wrong elements are about 1 off."""
        torch, dist = self.torch, self.dist
        expected, found = self.plain().float(), self.fused().float()
        if found.shape != expected.shape:
            fail(f"{self.word}: the result is {tuple(found.shape)}, not {tuple(expected.shape)}", WRONG)
        # NaN counts as wrong, too.
        wrong = (~((found - expected).abs() <= 0.1 + 0.02 * expected.abs())).sum()
        dist.all_reduce(wrong)
        if wrong.item():
            fail(f"{self.word}: {wrong.item()} elements are not what a collective and a product give", WRONG)

    def eager(self):
        return time_us(self.torch, self.dist, lambda: repeat(self.fused, CALLS), CALLS, ROUNDS, WARM_UP)

    def graph(self):
        return time_us(self.torch, self.dist, captured(self.torch, self.fused, CALLS), CALLS, ROUNDS, WARM_UP)


def say(rank, word, us, how):
    if rank == 0:
        print(json.dumps({"shape": word, "us": us, "how": how}), flush=True)


def run_rank(arguments):
    rank, ranks, words = arguments.rank, arguments.ranks, arguments.operations
    torch, dist = join(rank, ranks, arguments.port)
    for word in words:
        operation = Operation(torch, dist, word, rank, ranks)
        operation.compare()
        say(rank, word, operation.eager(), "eager")
        operation.compare()
        del operation
        torch.cuda.empty_cache()
    # Graphs come after all calls one by one, because a capture that fails may leave the streams unusable.
    for word in () if arguments.no_graphs else words:
        operation = Operation(torch, dist, word, rank, ranks)
        operation.compare()
        say(rank, word, operation.graph(), "graph")
        del operation
        torch.cuda.empty_cache()
    leave(dist)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ranks", type=int)
    parser.add_argument("operations", nargs="+", metavar="OPERATION:M,K,N")
    parser.add_argument("--no-graphs", action="store_true", help="enqueue call by call only")
    declare_rank(parser)
    arguments = parser.parse_args()
    no_multicast()
    for word in arguments.operations:
        parse(word)
    run(arguments, run_rank)


if __name__ == "__main__":
    main()
