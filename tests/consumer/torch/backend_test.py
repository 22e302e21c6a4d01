#!/usr/bin/env python3
"""Runs torch.distributed on the backend "chorale": backend_test.py FOLDER [--share-gpu]

FOLDER is a build, or where Chorale is installed. On the CPU with 2 and 4 processes; on GPUs with as many as there are, 2 at least, or
with --share-gpu with 2 on one. Exits with 77 and says why where PyTorch is absent.
"""
import os
import subprocess
import sys
import tempfile

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing
    import torch.utils.cpp_extension
except ImportError as error:
    print(f"skipped: PyTorch is not installed ({error})")
    sys.exit(77)

DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.int64, torch.uint8, torch.int8]
OPS = [dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX]


def values(rank, n, dtype, device, salt=0):
    """Small whole numbers: what is made of them is exact in every type and order."""
    generator = torch.Generator().manual_seed(1000 * salt + rank)
    return torch.randint(0, 3, (n,), generator=generator).to(dtype).to(device)


def expect(what, got, wanted):
    assert got.dtype == wanted.dtype and torch.equal(got.cpu(), wanted.cpu()), f"rank {dist.get_rank()}: {what}"


def reduced(op, all_values):
    result = all_values[0].clone()
    for one in all_values[1:]:
        if op == dist.ReduceOp.SUM:
            result += one
        elif op == dist.ReduceOp.PRODUCT:
            result *= one
        else:
            result = (torch.minimum if op == dist.ReduceOp.MIN else torch.maximum)(result, one)
    return result


def test_reductions(rank, ranks, device, sizes):
    for n in sizes:
        for dtype in DTYPES if n < 10000 else [torch.bfloat16, torch.float32]:
            for op in OPS:
                everybody = [values(peer, n, dtype, device) for peer in range(ranks)]
                mine = everybody[rank].clone()
                dist.all_reduce(mine, op)
                expect(f"all_reduce of {n} {dtype}, {op}", mine, reduced(op, everybody))
    flags = torch.tensor([rank == 0, False, True], device=device)
    dist.all_reduce(flags)
    expect("all_reduce of bools", flags, torch.tensor([True, False, True]))
    mean = torch.full((5,), float(rank), device=device)
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    expect("an average", mean, torch.full((5,), (ranks - 1) / 2))
    for root in range(ranks):
        everybody = [values(peer, 1001, torch.float32, device) for peer in range(ranks)]
        mine = everybody[rank].clone()
        dist.reduce(mine, root)
        expect("reduce", mine, sum(everybody) if rank == root else everybody[rank])


def test_moves(rank, ranks, device, sizes):
    for n in sizes:
        for dtype in [torch.float32, torch.bool, torch.complex64, torch.int16]:
            everybody = [values(peer, n * ranks, dtype, device) for peer in range(ranks)]
            mine = everybody[rank]
            out = torch.empty(n * ranks * ranks, dtype=dtype, device=device)
            dist.all_gather_into_tensor(out, mine)
            expect(f"all_gather_into_tensor of {n}", out, torch.cat(everybody))
            parts = [torch.empty_like(mine) for _ in range(ranks)]
            dist.all_gather(parts, mine)
            expect("all_gather", torch.cat(parts), torch.cat(everybody))
            out = torch.empty_like(mine)
            dist.all_to_all_single(out, mine)
            wanted = torch.cat([one[rank * n:(rank + 1) * n] for one in everybody])
            expect("all_to_all_single", out, wanted)
            parts = [torch.empty(n, dtype=dtype, device=device) for _ in range(ranks)]
            dist.all_to_all(parts, list(mine.chunk(ranks)) if n else [mine] * ranks)
            expect("all_to_all", torch.cat(parts), wanted)
            for root in range(ranks):
                mine = everybody[rank].clone()
                dist.broadcast(mine, root)
                expect(f"broadcast from {root}", mine, everybody[root])
        everybody = [values(peer, n * ranks, torch.bfloat16, device) for peer in range(ranks)]
        wanted = sum(everybody)[rank * n:(rank + 1) * n]
        out = torch.empty(n, dtype=torch.bfloat16, device=device)
        dist.reduce_scatter_tensor(out, everybody[rank])
        expect("reduce_scatter_tensor", out, wanted)
        if n:
            dist.reduce_scatter(out.zero_(), list(everybody[rank].chunk(ranks)))
            expect("reduce_scatter", out, wanted)
    # At odd places, so that no word is aligned.
    mine = torch.arange(1 + 8 * ranks, dtype=torch.uint8, device=device)[1:]
    out = torch.empty(3 + mine.numel() * ranks, dtype=torch.uint8, device=device)[3:]
    dist.all_gather_into_tensor(out, mine)
    expect("all_gather at odd addresses", out, mine.repeat(ranks))
    names = [None] * ranks
    dist.all_gather_object(names, {"rank": rank})
    assert names == [{"rank": peer} for peer in range(ranks)], names


def test_several_at_a_time(rank, ranks, device):
    tensors = [values(rank, 5000, torch.float32, device, salt) for salt in range(6)]
    works = [dist.all_reduce(one, async_op=True) for one in tensors]
    twice = works[0].get_future().then(lambda done: done.value()[0] * 2)
    for work in works:
        work.wait()
    for salt, one in enumerate(tensors):
        expect("one of several", one, sum(values(peer, 5000, torch.float32, device, salt) for peer in range(ranks)))
    expect("a future", twice.wait(), tensors[0] * 2)
    some = dist.new_group([0, 1], backend="chorale")
    if rank < 2:
        mine = torch.full((7,), float(rank + 1), device=device)
        dist.all_reduce(mine, group=some)
        expect("a smaller group", mine, torch.full((7,), 3.0))
    dist.barrier()


def test_training(rank, ranks, device):
    """DistributedDataParallel: the weights of all ranks are those of one that saw all the data."""
    def model():
        torch.manual_seed(7)
        return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).double().to(device)

    data = torch.randn(ranks * 16, 32, generator=torch.Generator().manual_seed(3), dtype=torch.float64).to(device)
    alone = model()
    together = torch.nn.parallel.DistributedDataParallel(model(), device_ids=[device.index] if device.type == "cuda" else None)
    for net, mine in ((alone, data), (together, data[rank * 16:(rank + 1) * 16])):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            net(mine).square().mean().backward()
            optimizer.step()
    for one, other in zip(alone.parameters(), together.module.parameters()):
        assert torch.allclose(one, other), f"rank {rank}: weights differ"


def test_graph(rank, ranks, device):
    """A captured all-reduce, replayed with other data each time."""
    held = torch.zeros(3000, device=device)
    for _ in range(3):  # binds
        dist.all_reduce(held)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        dist.all_reduce(held)
    dist.barrier()
    for salt in range(20):
        held.copy_(values(rank, 3000, torch.float32, device, salt))
        graph.replay()
        expect("a replay", held, sum(values(peer, 3000, torch.float32, device, salt) for peer in range(ranks)))


def refused(call):
    try:
        call()
    except (RuntimeError, ValueError) as error:
        return str(error)
    raise AssertionError("a wrong call was taken")


def test_refusals(rank, ranks, device):
    tensor = torch.ones(6, device=device)
    assert "does not support send" in refused(lambda: dist.send(tensor, 1 - rank % 2))
    assert "reduces by SUM" in refused(lambda: dist.all_reduce(tensor.int(), dist.ReduceOp.BXOR))
    assert "has no type" in refused(lambda: dist.all_reduce(torch.ones(4, dtype=torch.int16, device=device)))
    splits = [6 - ranks + 1] + [1] * (ranks - 1)
    assert "parts of one size" in refused(lambda: dist.all_to_all_single(torch.empty(6, device=device), tensor, splits, splits))


def fails(call):
    """What all_reduce of `call` raises, on GPUs perhaps a later one, since the first only enqueued it."""
    for _ in range(100):
        try:
            call()
            if torch.cuda.is_initialized():
                torch.cuda.synchronize()
        except dist.DistBackendError as error:
            return str(error)
    raise AssertionError("nothing was said of a failure")


def fault_main(rank, ranks, prefix, folder, kind, share, fault):
    """Ranks that disagree, and a rank that is gone: an error on the others, and no hang."""
    device = join(rank, ranks, prefix, folder, kind, share)
    dist.all_reduce(torch.ones(1000, device=device))
    if fault == "other sizes":
        said = fails(lambda: dist.all_reduce(torch.ones(1000 + rank, device=device)))
        assert "bytes" in said, said
    elif rank == ranks - 1:
        os._exit(0)
    else:
        said = fails(lambda: dist.all_reduce(torch.ones(1000, device=device)))
        assert f"rank {ranks - 1}" in said and ("died" in said or "left" in said), said
    os._exit(0)  # no group is left to be destroyed


def join(rank, ranks, prefix, folder, kind, share):
    """Makes the process group; gives the device of this rank"""
    os.environ["TORCH_CHORALE_PREFIX"] = prefix
    sys.path.insert(0, os.path.join(prefix, "share", "chorale", "torch"))
    device = torch.device("cpu")
    if kind == "cuda":
        device = torch.device("cuda", 0 if share else rank)
        torch.cuda.set_device(device)
    import chorale_torch  # registers the backend
    del chorale_torch
    dist.init_process_group("chorale", init_method=f"file://{folder}/{kind}{ranks}", rank=rank, world_size=ranks)
    return device


def rank_main(rank, ranks, prefix, folder, kind, share):
    device = join(rank, ranks, prefix, folder, kind, share)
    sizes = [0, 1, 3, 1000, 65537]
    # On GPUs more than what is staged at a time.
    test_reductions(rank, ranks, device, sizes + ([17_000_001] if kind == "cuda" else []))
    test_moves(rank, ranks, device, sizes + ([4_500_001] if kind == "cuda" else []))
    test_several_at_a_time(rank, ranks, device)
    test_refusals(rank, ranks, device)
    if kind == "cuda":
        test_graph(rank, ranks, device)
    test_training(rank, ranks, device)
    dist.barrier()
    dist.destroy_process_group()


def main():
    words = sys.argv[1:]
    share = "--share-gpu" in words
    paths = [word for word in words if not word.startswith("--")]
    if len(paths) != 1:
        sys.exit(__doc__)
    if not torch.compiled_with_cxx11_abi() or not hasattr(dist.Backend, "register_backend"):
        print(f"skipped: PyTorch {torch.__version__} is too old for the backend")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="chorale-torch-") as folder:
        prefix = os.path.realpath(paths[0])
        if os.path.exists(os.path.join(prefix, "CMakeCache.txt")):
            build, prefix = prefix, os.path.join(folder, "installed")
            subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        sys.path.insert(0, os.path.join(prefix, "share", "chorale", "torch"))
        os.environ["TORCH_CHORALE_PREFIX"] = prefix
        os.environ.setdefault("TORCH_EXTENSIONS_DIR", folder)
        import chorale_torch
        chorale_torch.extension()  # once, before the ranks ask for it together
        runs = [("cpu", 2), ("cpu", 4)]
        gpus = torch.cuda.device_count()
        if gpus >= 2:
            runs += [("cuda", ranks) for ranks in (2, 4, 8) if ranks <= gpus]
        elif gpus == 1 and share:
            runs += [("cuda", 2)]
        for kind, ranks in runs:
            for number, (what, *words) in enumerate([(rank_main,), (fault_main, "other sizes"), (fault_main, "a lost peer")]):
                meet = os.path.join(folder, f"{kind}{ranks}.{number}")
                os.mkdir(meet)
                torch.multiprocessing.spawn(what, (ranks, prefix, meet, kind, share, *words), nprocs=ranks)
            print(f"torch.distributed on chorale, {ranks} processes, {kind}: right", flush=True)


if __name__ == "__main__":
    main()
