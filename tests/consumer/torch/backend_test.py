#!/usr/bin/env python3
"""Runs torch.distributed on the backend "chorale": backend_test.py FOLDER [--share-gpu] [--only-cuda]

FOLDER is a build folder or an installation of Chorale. It runs on the CPU with 2, 3 and 4 processes, and on GPUs
with one process per GPU, if there are at least 2. With --share-gpu 2 processes share one GPU. With --only-cuda it leaves
out the CPU. If PyTorch is missing, it says so and exits with 77.
"""
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing
    import torch.utils.cpp_extension
except ImportError as error:
    print(f"skipped: PyTorch is not installed ({error})")
    sys.exit(77)

if tuple(int(number) for number in torch.__version__.split(".")[:2]) < (2, 11):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "bindings", "torch"))
    try:
        import chorale_torch
    except ImportError as error:
        assert torch.__version__ in str(error) and "2.11" in str(error), error
        print(f"skipped: PyTorch {torch.__version__} is too old for the backend")
        sys.exit(77)
    sys.exit(f"PyTorch {torch.__version__} is too old for the backend, and was taken")

if not torch.compiled_with_cxx11_abi():
    print(f"skipped: PyTorch {torch.__version__} was built with the old ABI of the C++ library")
    sys.exit(77)

FP8 = [torch.float8_e4m3fn, torch.float8_e5m2]
DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.int64, torch.uint8, torch.int8, *FP8]
OPS = [dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX]


def values(rank, n, dtype, device, salt=0):
    """Returns small whole numbers, so that all results are exact in every type and order."""
    generator = torch.Generator().manual_seed(1000 * salt + rank)
    return torch.randint(0, 3, (n,), generator=generator).to(dtype).to(device)


def many(rank, n, device):
    """Returns bytes that are the same on all devices of a kind."""
    generator = torch.Generator(device).manual_seed(rank)
    return torch.randint(0, 255, (n,), generator=generator, dtype=torch.uint8, device=device)


def expect(what, got, wanted):
    assert got.dtype == wanted.dtype and torch.equal(comparable(got), comparable(wanted)), f"rank {dist.get_rank()}: {what}"


def comparable(tensor):
    """Converts floats of 8 bits, because PyTorch neither compares them nor calculates with them."""
    return tensor.cpu().float() if tensor.dtype in FP8 else tensor.cpu()


def reduced(op, all_values):
    dtype = all_values[0].dtype
    result, *others = [one.float() if dtype in FP8 else one.clone() for one in all_values]
    for one in others:
        if op == dist.ReduceOp.SUM:
            result += one
        elif op == dist.ReduceOp.PRODUCT:
            result *= one
        else:
            result = (torch.minimum if op == dist.ReduceOp.MIN else torch.maximum)(result, one)
    return result.to(dtype)


def test_other_types(rank, ranks, device):
    """Reduces types for which PyTorch has no arithmetic, and types that have no kernel, because another type gives exactly the
    same results."""
    big = torch.full((5,), 2**62 + rank, dtype=torch.int64, device=device).view(torch.uint64)
    dist.all_reduce(big)
    wrapped = (ranks * 2**62 + ranks * (ranks - 1) // 2 + 2**63) % 2**64 - 2**63
    expect("sums of uint64", big.view(torch.int64), torch.full((5,), wrapped, dtype=torch.int64, device=device))
    largest = torch.full((5,), -ranks + rank, dtype=torch.int64, device=device).view(torch.uint64)
    dist.all_reduce(largest, dist.ReduceOp.MAX)
    expect("the maximum of uint64", largest.view(torch.int64), torch.full((5,), -1, dtype=torch.int64, device=device))
    for op, word in (dist.ReduceOp.BAND, all), (dist.ReduceOp.BOR, any):
        bits = torch.tensor([rank == 0, True, False], device=device)
        dist.all_reduce(bits, op)
        expect("bits of bools", bits, torch.tensor([word(peer == 0 for peer in range(ranks)), True, False], device=device))
    pairs = torch.full((7 * ranks,), complex(rank, 1), dtype=torch.complex64, device=device)
    part = torch.empty(7, dtype=torch.complex64, device=device)
    dist.reduce_scatter_tensor(part, pairs)
    expect("sums of complex numbers", part, torch.full((7,), complex(ranks * (ranks - 1) // 2, ranks), dtype=torch.complex64, device=device))


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
    test_other_types(rank, ranks, device)
    for root in range(ranks):
        everybody = [values(peer, 1001, torch.float32, device) for peer in range(ranks)]
        mine = everybody[rank].clone()
        dist.reduce(mine, root)
        expect("reduce", mine, sum(everybody) if rank == root else everybody[rank])


def test_layouts(rank, ranks, device):
    """Uses tensors that are dense in an order other than that of their dimensions, and tensors that are not dense."""
    whole = values(rank, 6 * 4 * 5 * 7, torch.float32, device).view(6, 4, 5, 7)
    everybody = [values(peer, 6 * 4 * 5 * 7, torch.float32, device).view(6, 4, 5, 7) for peer in range(ranks)]
    for laid in (lambda one: one.to(memory_format=torch.channels_last), lambda one: one.transpose(0, 3),
                 lambda one: one[:, 1:3], lambda one: one[..., ::2]):
        mine = laid(whole.clone())
        assert not mine.is_contiguous()
        dist.all_reduce(mine)
        expect("all_reduce of another layout", mine, laid(sum(everybody)))
        dist.all_reduce(mine.fill_(1))
        expect("all_reduce in place", mine, torch.full_like(mine, ranks))
        for root in range(ranks):
            mine = laid(whole.clone())
            dist.broadcast(mine, root)
            expect(f"broadcast of another layout from {root}", mine, laid(everybody[root]))
            mine = laid(whole.clone())
            dist.reduce(mine, root)
            if rank == root:
                expect("reduce of another layout", mine, laid(sum(everybody)))


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
    # The addresses are odd, so that no word is aligned.
    mine = torch.arange(1 + 8 * ranks, dtype=torch.uint8, device=device)[1:]
    out = torch.empty(3 + mine.numel() * ranks, dtype=torch.uint8, device=device)[3:]
    dist.all_gather_into_tensor(out, mine)
    expect("all_gather at odd addresses", out, mine.repeat(ranks))
    names = [None] * ranks
    dist.all_gather_object(names, {"rank": rank})
    assert names == [{"rank": peer} for peer in range(ranks)], names


def sent(tensor, peer):
    return dist.P2POp(dist.isend, tensor, peer)


def received(tensor, peer):
    return dist.P2POp(dist.irecv, tensor, peer)


def test_blocking_messages(rank, ranks, device):
    """Exchanges in pairs. With an odd number of ranks the last rank has no partner."""
    mine, out = values(rank, 1000, torch.float32, device), torch.empty(1000, device=device)
    other = rank ^ 1
    if rank < other < ranks:
        dist.send(mine, other, tag=7)
        dist.recv(out, other, tag=8)
    elif other < rank:
        dist.recv(out, other, tag=9)
        dist.send(mine, other)
    if other < ranks:
        expect("send and recv", out, values(other, 1000, torch.float32, device))


def test_sends_first(rank, ranks, device, longest):
    """Makes all ranks send before they receive, more than is buffered anywhere. It runs twice, because ranks connect
    in the first run."""
    right, left = (rank + 1) % ranks, (rank - 1) % ranks
    for n in (longest, longest // 2 + 1):
        mine, out = many(rank, n, device), torch.empty(n, dtype=torch.uint8, device=device)
        works = [dist.isend(mine, right), dist.irecv(out, left)]
        for work in works:
            work.wait()
        expect(f"isend before irecv of {n}", out, many(left, n, device))


def test_messages_in_turns(rank, device, n):
    """Sends a question and its answer, while another receive is open."""
    late, early = torch.empty(5, device=device), torch.full((n,), 3, dtype=torch.uint8, device=device)
    if rank == 0:
        answer = dist.irecv(late, 1)
        question = dist.isend(early, 1)
        question.wait()
        answer.wait()
        expect("an answer", late, torch.full((5,), 4.0))
        assert answer.is_completed() or device.type == "cuda"
    elif rank == 1:
        dist.recv(early.fill_(0), 0)
        dist.send(torch.full((5,), 1 + float(early[0]), device=device), 0)


def test_batches(rank, ranks, device):
    """Sends several messages between one pair, some empty or at odd addresses, in a batch with messages to and from
    all ranks."""
    for salt in range(3):
        sizes = [3, 0, 65537, 1]
        ops, wanted = [], []
        for shift in range(1, ranks):
            to, come = (rank + shift) % ranks, (rank - shift) % ranks
            for number, n in enumerate(sizes):
                ops.append(sent(values(rank, n + 1, torch.int16, device, salt * 100 + to * 10 + number)[1:], to))
                wanted.append((torch.empty(n + 3, dtype=torch.int16, device=device)[3:], come, n, number))
        for one, come, _, _ in wanted:
            ops.append(received(one, come))
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        for one, come, n, number in wanted:
            expect("one of a batch", one, values(come, n + 1, torch.int16, device, salt * 100 + rank * 10 + number)[1:])


def test_messages_beside_collectives(rank, ranks, device, n):
    """Makes some ranks send before collectives, and receive after them."""
    right, left = (rank + 1) % ranks, (rank - 1) % ranks
    mine, out = many(rank, n, device), torch.empty(n, dtype=torch.uint8, device=device)
    total = torch.ones(100, device=device)
    works = []
    if rank % 2 == 0:
        works.append(dist.isend(mine, right))
    dist.all_reduce(total)
    if rank % 2 == 1:
        works.append(dist.isend(mine, right))
    works.append(dist.irecv(out, left))
    dist.all_reduce(total)
    for work in works:
        work.wait()
    expect("beside collectives", out, many(left, n, device))
    expect("collectives beside messages", total, torch.full((100,), float(ranks * ranks)))


def test_uneven(rank, ranks, device, factor):
    """Runs collectives with parts of different sizes; `factor` scales the sizes."""
    def count(salt, source, to):
        return (source * 7 + to * 3 + salt) % 5 * factor

    for salt in range(5):
        sends, recvs = ([count(salt, rank, peer) for peer in range(ranks)], [count(salt, peer, rank) for peer in range(ranks)])
        parts = [values(rank * ranks + peer, 3 * n, torch.float32, device, salt).view(n, 3) for peer, n in enumerate(sends)]
        wanted = [values(peer * ranks + rank, 3 * n, torch.float32, device, salt).view(n, 3) for peer, n in enumerate(recvs)]
        out = torch.empty(sum(recvs), 3, device=device)
        dist.all_to_all_single(out, torch.cat(parts), recvs, sends)
        expect("all_to_all_single with split sizes", out, torch.cat(wanted))
        outs = [torch.empty(3, n, device=device).t() for n in recvs]  # not contiguous
        dist.all_to_all(outs, parts)
        for one, other in zip(outs, wanted):
            expect("all_to_all of different sizes", one, other)
        outs = [torch.empty(count(salt, peer, 0), dtype=torch.bool, device=device) for peer in range(ranks)]
        dist.all_gather(outs, values(rank, count(salt, rank, 0), torch.int32, device, salt).bool())
        for peer, one in enumerate(outs):
            expect("all_gather of different sizes", one, values(peer, count(salt, peer, 0), torch.int32, device, salt).bool())
        lengths = [count(salt, peer, 0) for peer in range(ranks)]
        everybody = [[values(source * ranks + peer, 2 * n, torch.float32, device, salt).view(n, 2).t() for peer, n in enumerate(lengths)]
                     for source in range(ranks)]
        out = torch.empty(lengths[rank], 2, device=device).t()
        dist.reduce_scatter(out, everybody[rank])
        expect("reduce_scatter of different sizes", out, sum(parts[rank] for parts in everybody))
    for root in range(ranks):
        everybody = [values(peer, 2 * factor + 1, torch.float64, device, root) for peer in range(ranks)]
        parts = [torch.empty_like(one) for one in everybody] if rank == root else None
        dist.gather(everybody[rank], parts, dst=root)
        for one, other in zip(parts or [], everybody):
            expect(f"gather to {root}", one, other)
        mine = torch.empty_like(everybody[rank])
        dist.scatter(mine, everybody if rank == root else None, src=root)
        expect(f"scatter from {root}", mine, everybody[rank])
        names = [None] * ranks if rank == root else None
        dist.gather_object({"rank": rank}, names, dst=root)
        assert names is None or names == [{"rank": peer} for peer in range(ranks)], names
        mine = [None]
        dist.scatter_object_list(mine, [f"for {peer}" for peer in range(ranks)] if rank == root else None, src=root)
        assert mine == [f"for {rank}"], mine


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
    """Trains with DistributedDataParallel: the weights of all ranks equal those of a single process that sees all
    the data."""
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


def test_streams(rank, ranks, device):
    """Runs calls on several streams, some of which nobody waits for yet. They use one plan, so they must not overlap."""
    def calls(tensors):
        current, other, works = torch.cuda.current_stream(), torch.cuda.Stream(), []
        other.wait_stream(current)
        for number, one in enumerate(tensors):
            if number % 3 == 0:
                works.append(dist.all_reduce(one, async_op=True))
            elif number % 3 == 1:
                dist.all_reduce(one)
            else:
                with torch.cuda.stream(other):
                    dist.all_reduce(one)
        current.wait_stream(other)
        for work in works:
            work.wait()

    for n in (100, 1 << 20):
        inputs = [values(rank, n, torch.float32, device, salt) for salt in range(30)]
        totals = [sum(values(peer, n, torch.float32, device, salt) for peer in range(ranks)) for salt in range(30)]
        tensors = [one.clone() for one in inputs]
        calls(tensors)
        for one, total in zip(tensors, totals):
            expect("on one of several streams", one, total)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            calls(tensors)
        for _ in range(3):
            for one, other in zip(tensors, inputs):
                one.copy_(other)
            graph.replay()
            for one, total in zip(tensors, totals):
                expect("on one of several streams of a graph", one, total)


def test_graph(rank, ranks, device):
    """Captures an all-reduce and replays it with other data each time."""
    held = torch.zeros(3000, device=device)
    for _ in range(3):  # the first call binds
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


def test_graph_of_messages(rank, ranks, device):
    """Captures a ring of messages and an all-to-all with split sizes, and replays them with other data each time."""
    right, left = (rank + 1) % ranks, (rank - 1) % ranks
    mine, out = torch.zeros(70000, device=device), torch.zeros(70000, device=device)
    sends, recvs = [rank + 1 + peer for peer in range(ranks)], [peer + 1 + rank for peer in range(ranks)]
    parts, came = torch.zeros(sum(sends), device=device), torch.zeros(sum(recvs), device=device)

    def all_of_it():
        for work in dist.batch_isend_irecv([sent(mine, right), received(out, left)]):
            work.wait()
        dist.all_to_all_single(came, parts, recvs, sends)

    all_of_it()
    torch.cuda.synchronize()
    dist.barrier()
    all_of_it()  # the ranks have connected
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        all_of_it()
    dist.barrier()
    for salt in range(20):
        mine.copy_(values(rank, 70000, torch.float32, device, salt))
        parts.fill_(float(rank * 100 + salt))
        graph.replay()
        expect("a replay of messages", out, values(left, 70000, torch.float32, device, salt))
        expect("a replay with split sizes", came,
               torch.cat([torch.full((n,), float(peer * 100 + salt)) for peer, n in enumerate(recvs)]))
        dist.barrier()


def expect_refused(why, call):
    try:
        call()
    except (RuntimeError, ValueError) as error:
        assert why in str(error), error
        return
    raise AssertionError(f"a wrong call was taken, not refused by '{why}'")


def test_refusals(rank, ranks, device):
    tensor = torch.ones(6, device=device)
    expect_refused("does not support recvAnysource", lambda: dist.recv(tensor))
    expect_refused("need contiguous", lambda: dist.send(torch.ones(4, 6, device=device).t(), (rank + 1) % ranks))
    for op in dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR:
        expect_refused("gather the words", lambda: dist.all_reduce(tensor.int(), op))
    expect_refused("sum bools as i32", lambda: dist.all_reduce(tensor.bool(), dist.ReduceOp.BXOR))
    expect_refused("bool by sum, prod, min, max, band, bor only, not by avg", lambda: dist.all_reduce(tensor.bool(), dist.ReduceOp.AVG))
    expect_refused("convert it to i32", lambda: dist.all_reduce(torch.ones(4, dtype=torch.int16, device=device)))
    expect_refused("convert it to i32", lambda: dist.all_reduce(torch.ones(4, dtype=torch.int16, device=device).view(torch.uint16)))
    numbers = torch.ones(4, dtype=torch.complex64, device=device)
    expect_refused("on complex tensors", lambda: dist.all_reduce(numbers, dist.ReduceOp.PRODUCT))  # PyTorch itself refuses this
    splits = [6 - ranks] + [1] * (ranks - 1)
    expect_refused("an input of 6 rows", lambda: dist.all_to_all_single(torch.empty(6, device=device), tensor, splits, splits))
    parts = [torch.ones(6 + peer, device=device) for peer in range(ranks)]
    expect_refused("one shape and type, not", lambda: dist.reduce_scatter(torch.empty(12, device=device), parts))
    parts = [torch.empty(6 + peer, device=device) for peer in range(ranks)]
    expect_refused("for itself, and room for", lambda: dist.all_gather(parts, torch.ones(99, device=device)))


def test_plans(rank, ranks, device, folder):
    """Runs a user's plans, directly and through torch.distributed. Returns a tensor in the group's memory."""
    import chorale_torch
    ring = chorale_torch.make("allreduce_ring", ranks, instances=2)
    assert (ring.name, ring.collective, ring.ranks) == ("allreduce_ring", "allreduce", ranks)
    for n in [0, 1, 1001, 65537]:
        everybody = [values(peer, n, torch.float32, device) for peer in range(ranks)]
        out = torch.full((n,), -1., device=device)
        chorale_torch.run(ring, out, everybody[rank])
        expect(f"a ring of {n}", out, sum(everybody))
        work = chorale_torch.run(ring, out, everybody[rank], op=dist.ReduceOp.MAX, async_op=True)
        work.wait()
        expect("a ring, largest", out, reduced(dist.ReduceOp.MAX, everybody))
        out = everybody[rank].clone()
        chorale_torch.run(ring, out)
        expect("a ring in place", out, sum(everybody))
    everybody = [values(peer, 1000, torch.complex64, device) for peer in range(ranks)]
    gather = chorale_torch.make("allgather_direct", ranks)
    out = torch.empty(1000 * ranks, dtype=torch.complex64, device=device)
    chorale_torch.run(gather, out, everybody[rank])
    expect("a gather", out, torch.cat(everybody))

    # Tensors in the group's memory are not copied, at any offset, in a user's plans and in others.
    ours, all_of_it = (chorale_torch.empty(3, n, dtype=torch.float32, device=device) for n in (1001, 1001 * ranks))
    assert ours.shape == (3, 1001) and not ours.any()
    everybody = [values(peer, 1001, torch.float32, device) for peer in range(ranks)]
    ours[1] = everybody[rank]
    for gathered in (lambda: chorale_torch.run(gather, all_of_it[2], ours[1]),
                     lambda: dist.all_gather_into_tensor(all_of_it[2], ours[1])):
        all_of_it.zero_()
        gathered()
        expect("a gather in the group's memory", all_of_it, torch.cat([torch.zeros(2, 1001 * ranks), torch.cat(everybody).cpu()[None]]))
    chorale_torch.run(gather, all_of_it[1], everybody[rank])
    expect("a gather from elsewhere", all_of_it[1], torch.cat(everybody))

    like = torch.ones(1001, device=device)
    before = chorale_torch.chosen("allreduce", like)
    chorale_torch.use(ring, least=4000, most=5000, device=device)
    assert chorale_torch.chosen("allreduce", like) == "allreduce_ring, as set by use()"
    assert "use()" not in before + chorale_torch.chosen("allreduce", like[:999]) + chorale_torch.chosen("allgather", like.to(torch.int16))
    dist.all_reduce(like)
    expect("all_reduce by a plan of one's own", like, torch.full((1001,), float(ranks)))

    gloo = dist.new_group(backend="gloo")
    expect_refused("has the backend 'gloo'", lambda: chorale_torch.run(ring, torch.ones(4), group=gloo))
    expect_refused(f"is for {ranks + 1} ranks", lambda: chorale_torch.run(chorale_torch.make("allreduce_ring", ranks + 1), like))
    expect_refused("turns 4004 bytes into 4004, and the tensors have 4004 and 4000", lambda: chorale_torch.run(ring, like[:1000], like))
    expect_refused("reduces nothing", lambda: chorale_torch.run(gather, out, out[:1000], op=dist.ReduceOp.SUM))
    expect_refused("instance", lambda: chorale_torch.make("allreduce_ring", ranks, instance=2))
    expect_refused("no_such", lambda: chorale_torch.load("no_such.json"))
    if ranks == 2:
        shipped = os.path.join(os.environ["TORCH_CHORALE_PREFIX"], "share", "chorale", "plans", "shipped", "allreduce_ring_2.json")
        chorale_torch.run(chorale_torch.load(shipped), like)
        expect("a plan of a file", like, torch.full((1001,), 4.))
        with open(shipped) as file:
            plan = json.load(file)
        operations = plan["gpus"][0]["threadblocks"][0]["ops"]
        operations.remove(next(one for one in operations if one["name"] == "wait"))
        broken = os.path.join(folder, f"broken{rank}.json")
        with open(broken, "w") as file:
            json.dump(plan, file)
        expect_refused("error: ", lambda: chorale_torch.load(broken))
    return ours


def fails(call):
    """Returns the error of `call`. On GPUs a later all_reduce may raise it, because the first one only enqueues."""
    for _ in range(100):
        try:
            call()
            if torch.cuda.is_initialized():
                torch.cuda.synchronize()
        except dist.DistBackendError as error:
            return str(error)
    raise AssertionError("nothing was said of a failure")


def fault_main(rank, ranks, prefix, folder, kind, share, fault):
    """Checks that ranks that disagree, or that lose a rank, receive an error and do not hang."""
    device = join(rank, ranks, prefix, folder, kind, share)
    dist.all_reduce(torch.ones(1000, device=device))
    if fault == "other plans":
        import chorale_torch
        if rank == 0:
            chorale_torch.use(chorale_torch.make("allreduce_ring", ranks), device=device)
        said = fails(lambda: dist.all_reduce(torch.ones(2000, device=device)))
        assert "ranks 0 and 1 disagree on the plan: 'allreduce_ring'" in said, said
    elif fault == "other sizes":
        said = fails(lambda: dist.all_reduce(torch.ones(1000 + rank, device=device)))
        assert "bytes" in said, said
    elif fault == "messages of other sizes":
        mine = torch.ones(1000 + rank, device=device)
        other = torch.ones(5, device=device)
        call = {0: lambda: (dist.send(mine, 1), dist.all_reduce(other)), 1: lambda: dist.recv(mine, 0)}
        said = fails(call.get(rank, lambda: dist.all_reduce(other)))
        assert "rank 0 sends 4000 bytes to rank 1, which receives 4004" in said, said
    elif fault == "a lost sender":
        mine, out = torch.ones(10, device=device), torch.empty(10, device=device)
        for work in dist.batch_isend_irecv([sent(mine, (rank + 1) % ranks), received(out, (rank - 1) % ranks)]):
            work.wait()
        expect("a message", out, mine)
        dist.barrier()
        if rank == 0:
            said = fails(lambda: dist.recv(out, ranks - 1))
            assert f"messages from rank {ranks - 1} to rank 0" in said and ("died" in said or "left" in said), said
        elif rank != ranks - 1:
            time.sleep(5)  # the test does not check this rank's error
    elif rank == ranks - 1:
        os._exit(0)
    else:
        said = fails(lambda: dist.all_reduce(torch.ones(1000, device=device)))
        assert f"rank {ranks - 1}" in said and ("died" in said or "left" in said), said
    os._exit(0)  # there is no group left to destroy


def join(rank, ranks, prefix, folder, kind, share):
    """Makes the process group, and returns the device of this rank."""
    os.environ["TORCH_CHORALE_PREFIX"] = prefix
    sys.path.insert(0, os.path.join(prefix, "share", "chorale", "torch"))
    device = torch.device("cpu")
    if kind == "cuda":
        device = torch.device("cuda", 0 if share else rank)
        torch.cuda.set_device(device)
    import chorale_torch  # registers the backend
    del chorale_torch
    dist.init_process_group("chorale", init_method=f"file://{folder}/{kind}{ranks}", rank=rank, world_size=ranks,
                            timeout=datetime.timedelta(seconds=60))
    return device


def rank_main(rank, ranks, prefix, folder, kind, share):
    device = join(rank, ranks, prefix, folder, kind, share)
    sizes = [0, 1, 3, 1000, 65537]
    # On GPUs this is more than the staging memory holds at once.
    test_reductions(rank, ranks, device, sizes + ([17_000_001] if kind == "cuda" else []))
    test_layouts(rank, ranks, device)
    test_moves(rank, ranks, device, sizes + ([4_500_001] if kind == "cuda" else []))
    longest = 300_000_000 if kind == "cuda" else 20_000_000
    test_blocking_messages(rank, ranks, device)
    test_sends_first(rank, ranks, device, longest)
    test_messages_in_turns(rank, device, longest // 8)
    test_batches(rank, ranks, device)
    test_messages_beside_collectives(rank, ranks, device, longest // 4)
    test_uneven(rank, ranks, device, 7)
    test_uneven(rank, ranks, device, 100_001)
    test_several_at_a_time(rank, ranks, device)
    test_refusals(rank, ranks, device)
    if kind == "cuda":
        test_streams(rank, ranks, device)
        test_graph(rank, ranks, device)
        test_graph_of_messages(rank, ranks, device)
    test_training(rank, ranks, device)
    kept = test_plans(rank, ranks, device, folder)
    dist.barrier()
    dist.destroy_process_group()
    expect("what was in the group's memory", kept[1], values(rank, 1001, torch.float32, device))


def main():
    words = sys.argv[1:]
    share = "--share-gpu" in words
    paths = [word for word in words if not word.startswith("--")]
    if len(paths) != 1:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(prefix="chorale-torch-") as folder:
        prefix = os.path.realpath(paths[0])
        if os.path.exists(os.path.join(prefix, "CMakeCache.txt")):
            build, prefix = prefix, os.path.join(folder, "installed")
            subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        sys.path.insert(0, os.path.join(prefix, "share", "chorale", "torch"))
        os.environ["TORCH_CHORALE_PREFIX"] = prefix
        os.environ.setdefault("TORCH_EXTENSIONS_DIR", folder)
        import chorale_torch
        chorale_torch.extension()  # builds it once, before all ranks need it at the same time
        runs = [] if "--only-cuda" in words else [("cpu", 2), ("cpu", 3), ("cpu", 4)]
        gpus = torch.cuda.device_count()
        if gpus >= 2:
            runs += [("cuda", ranks) for ranks in (2, 4, 8) if ranks <= gpus]
        elif gpus == 1 and share:
            runs += [("cuda", 2)]
        for kind, ranks in runs:
            for number, (what, *words) in enumerate([(rank_main,), (fault_main, "other sizes"), (fault_main, "other plans"), (fault_main, "a lost peer"),
                                                     (fault_main, "messages of other sizes"), (fault_main, "a lost sender")]):
                meet = os.path.join(folder, f"{kind}{ranks}.{number}")
                os.mkdir(meet)
                torch.multiprocessing.spawn(what, (ranks, prefix, meet, kind, share, *words), nprocs=ranks)
            print(f"torch.distributed on chorale, {ranks} processes, {kind}: right", flush=True)


if __name__ == "__main__":
    main()
