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
import datetime
import json
import os
import socket
import statistics
import subprocess
import sys

SWITCHES = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1"}
CALLS, ROUNDS, WARM_UP = 10, 20, 5
WRONG, DID_NOT_RUN = 2, 3


def fail(text, status=DID_NOT_RUN):
    print(f"torch_fused.py: {text}", file=sys.stderr, flush=True)
    sys.exit(status)


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


def no_multicast():
    """Sets the switches, and refuses to run if one already has another value."""
    for name, value in SWITCHES.items():
        found = os.environ.setdefault(name, value)
        if found != value:
            fail(f"{name} is '{found}', but must be '{value}': NVLink multicast must be off")
    os.environ.pop("TORCH_SYMMMEM", None)  # so that PyTorch takes the CUDA backend, to which the switch belongs


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

    def time(self, call, calls_in_one):
        """Returns the microseconds of one of `calls_in_one` calls."""
        torch, dist = self.torch, self.dist
        times = []
        for turn in range(WARM_UP + ROUNDS):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            dist.barrier()
            torch.cuda.synchronize()
            begin.record()
            call()
            end.record()
            torch.cuda.synchronize()
            if turn >= WARM_UP:
                times.append(begin.elapsed_time(end) * 1000 / calls_in_one)
        slowest = torch.tensor(times, dtype=torch.float64, device="cuda")
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        return statistics.median(slowest.tolist())

    def eager(self):
        def call():
            for _ in range(CALLS):
                self.fused()
        return self.time(call, CALLS)

    def graph(self):
        torch = self.torch
        recorded = torch.cuda.CUDAGraph()
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            self.fused()
        torch.cuda.synchronize()
        with torch.cuda.graph(recorded, stream=side, capture_error_mode="thread_local"):
            for _ in range(CALLS):
                self.fused()
        return self.time(recorded.replay, CALLS)


def say(rank, word, us, how):
    if rank == 0:
        print(json.dumps({"shape": word, "us": us, "how": how}), flush=True)


def run_rank(rank, ranks, port, words, graphs):
    import torch
    import torch.distributed as dist
    try:
        from torch._C._autograd import DeviceType
        from torch._C._distributed_c10d import _SymmetricMemory
        from torch.distributed._symmetric_memory import enable_symm_mem_for_group
    except ImportError as error:
        fail(f"PyTorch {torch.__version__} has no symmetric memory: {error}")

    torch.cuda.set_device(rank)
    supported = getattr(_SymmetricMemory, "has_multicast_support", None)
    if supported is None or supported(DeviceType.CUDA, rank):
        fail(f"PyTorch {torch.__version__} would use NVLink multicast although it is turned off: use a newer one")
    dist.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks,
                            timeout=datetime.timedelta(seconds=60), device_id=torch.device("cuda", rank))
    enable_symm_mem_for_group(dist.group.WORLD.group_name)
    for word in words:
        operation = Operation(torch, dist, word, rank, ranks)
        operation.compare()
        say(rank, word, operation.eager(), "eager")
        operation.compare()
        del operation
        torch.cuda.empty_cache()
    # Graphs come after all calls one by one, because a capture that fails may leave the streams unusable.
    for word in words if graphs else ():
        operation = Operation(torch, dist, word, rank, ranks)
        operation.compare()
        say(rank, word, operation.graph(), "graph")
        del operation
        torch.cuda.empty_cache()
    dist.barrier()
    dist.destroy_process_group()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ranks", type=int)
    parser.add_argument("operations", nargs="+", metavar="OPERATION:M,K,N")
    parser.add_argument("--no-graphs", action="store_true", help="enqueue call by call only")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    no_multicast()
    for word in arguments.operations:
        parse(word)
    if arguments.rank is not None:
        run_rank(arguments.rank, arguments.ranks, arguments.port, arguments.operations, not arguments.no_graphs)
        return
    try:
        import torch
    except ImportError as error:
        fail(f"{error}: install PyTorch, or name another interpreter")
    if torch.cuda.device_count() < arguments.ranks:
        fail(f"PyTorch {torch.__version__} sees {torch.cuda.device_count()} GPUs, but {arguments.ranks} are needed")
    port = free_port()
    command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--port", str(port)]
    processes = [subprocess.Popen([*command, "--rank", str(rank)]) for rank in range(arguments.ranks)]
    statuses = set()
    # If a rank fails, the others are ended, because they would wait for it until their timeout.
    while processes:
        for process in list(processes):
            try:
                status = process.wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                continue
            processes.remove(process)
            statuses.add(status)
            if status:
                for other in processes:
                    other.terminate()
    sys.exit(WRONG if WRONG in statuses else DID_NOT_RUN if statuses != {0} else 0)


if __name__ == "__main__":
    main()
