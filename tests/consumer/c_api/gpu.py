#!/usr/bin/env python3
"""Uses the C API on GPUs by ctypes, with PyTorch's tensors and streams, as an engine does: gpu.py LIBRARY [RANKS]
[--share-gpus | --alone]

It runs one process per rank, each with its own GPU, or with --share-gpus all with the first GPU. With --alone each
process sees no GPU except its own, as under Ray and Slurm. If PyTorch is missing, it says so and does nothing.
"""
import multiprocessing
import os
import sys
from ctypes import Structure, byref, c_int32, c_uint64, c_void_p, sizeof

from ranks import Arguments, Chorale

BF16, CUDA = 3, 2
COUNT, REPLAYS = 100_000, 10


class SendTo(Structure):  # the same as chorale_recv_from
    _fields_ = [("data", c_void_p), ("bytes", c_uint64), ("peer", c_int32), ("reserved", c_int32)]


def visible(rank):
    """Returns the value of CUDA_VISIBLE_DEVICES that makes a rank's GPU the only one."""
    return os.environ["CUDA_VISIBLE_DEVICES"].split(",")[rank] if "CUDA_VISIBLE_DEVICES" in os.environ else str(rank)


def run_rank(library, address, rank, ranks, share, alone):
    if alone:
        os.environ["CUDA_VISIBLE_DEVICES"] = visible(rank)
    import torch
    chorale, number = Chorale(library), 0 if share or alone else rank
    assert not alone or torch.cuda.device_count() == 1
    torch.cuda.set_device(number)
    config = chorale.made("config_load")
    chorale.ok("config_set", config, b"CHORALE_TIMEOUT", b"60s")
    world = chorale.made("world_join", address, rank, ranks, config)
    executor = chorale.made("executor_create", world, config, CUDA, number)
    stream = torch.cuda.Stream()

    def new(salt):
        """Returns small whole numbers for every rank, whose sums are exact."""
        return [torch.arange(COUNT, device="cuda").add(salt * 7 + peer).remainder(11).bfloat16() for peer in range(ranks)]

    def arguments(x, y):
        return Arguments(sizeof(Arguments), x.data_ptr(), y.data_ptr(), x.nbytes, BF16)

    def expect(what, got, wanted):
        chorale.ok("executor_synchronize", executor, c_void_p(stream.cuda_stream))
        assert torch.equal(got, wanted), f"rank {rank}: {what}"

    plan = chorale.made("plan_make", b"allreduce_all_pairs", ranks, None, c_uint64(0))
    x, y = torch.empty(COUNT, dtype=torch.bfloat16, device="cuda"), torch.empty(COUNT, dtype=torch.bfloat16, device="cuda")
    with torch.cuda.stream(stream):
        # Runs eagerly, and then captures and replays with new data each time, between eager runs.
        chorale.ok("executor_prepare", executor, plan, byref(arguments(x, y)))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            chorale.ok("executor_execute", executor, plan, byref(arguments(x, y)), c_void_p(stream.cuda_stream))
        for turn in range(2 * REPLAYS):
            everybody = new(turn)
            x.copy_(everybody[rank])
            if turn % 2:
                graph.replay()
            else:
                chorale.ok("executor_execute", executor, plan, byref(arguments(x, y)), c_void_p(stream.cuda_stream))
            expect(f"turn {turn}", y, sum(everybody))
        # Chooses the plan by size.
        plans = chorale.made("tuned_plans_open", None, None, ranks, CUDA, torch.cuda.get_device_name().encode(), 0)
        everybody = new(99)
        x.copy_(everybody[rank])
        chorale.ok("tuned_plans_execute", plans, executor, b"allreduce", byref(arguments(x, x)), c_void_p(stream.cuda_stream))
        expect("by size, in place", x, sum(everybody))
        # Sends messages around a ring, of a size that is not a multiple of any unit.
        exchange = chorale.made("exchange_create", world, config, CUDA, number, None)
        sent, received = [peer.view(torch.uint8)[1:77_778] for peer in new(5)], torch.empty(77_777, dtype=torch.uint8, device="cuda")
        send = SendTo(sent[rank].data_ptr(), received.nbytes, (rank + 1) % ranks, 0)
        recv = SendTo(received.data_ptr(), received.nbytes, (rank - 1) % ranks, 0)
        chorale.ok("exchange_run", exchange, byref(send), c_uint64(1), byref(recv), c_uint64(1), c_void_p(stream.cuda_stream))
        chorale.ok("exchange_synchronize", exchange, c_void_p(stream.cuda_stream))
        assert torch.equal(received, sent[rank - 1]), f"rank {rank}: a message"
    chorale.ok("world_barrier", world)
    del graph
    for name, handle in ("exchange", exchange), ("tuned_plans", plans), ("executor", executor), ("plan", plan), ("world", world), ("config", config):
        chorale.ok(name + "_close", handle)


def main():
    try:
        import torch
    except ImportError as error:
        print(f"skipped: PyTorch is not installed ({error})")
        return
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    library, ranks, share, alone = words[0], int(words[1]) if len(words) > 1 else 2, "--share-gpus" in sys.argv, "--alone" in sys.argv
    if torch.cuda.device_count() < (1 if share else ranks):
        sys.exit(f"{ranks} ranks need {ranks} GPUs, or one and --share-gpus; there are {torch.cuda.device_count()}")
    start = multiprocessing.get_context("spawn")  # CUDA does not work in a child of fork()
    address = f"shm://chorale-c-api-{os.getpid()}".encode()
    processes = [start.Process(target=run_rank, args=(library, address, rank, ranks, share, alone)) for rank in range(ranks)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    codes = [process.exitcode for process in processes]
    if codes != [0] * ranks:
        sys.exit(f"the processes ended with {codes}")
    print(f"{ranks} processes by ctypes on GPUs: right")


if __name__ == "__main__":
    main()
