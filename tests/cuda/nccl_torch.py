#!/usr/bin/env python3
"""Uses torch.distributed with the backend nccl, and prints the results:
  nccl_torch.py under torchrun    trains small models, on two GPUs
  nccl_torch.py lost              looks what other ranks see when a rank dies, and when a rank aborts
"""
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel

RANK = int(os.environ.get("RANK", 0))
DEVICE = torch.device("cuda", RANK % max(1, torch.cuda.device_count()))  # ranks may share a GPU
STEPS = 50


def say(*words):
    if RANK == 0:
        print(*words, flush=True)


def collectives():
    values = torch.full((1000,), float(RANK + 1), device=DEVICE)
    dist.all_reduce(values)
    say("all_reduce", values[0].item())
    scaled = torch.full((1000,), float(RANK + 1), device=DEVICE)
    dist.all_reduce(scaled, op=dist._make_nccl_premul_sum(0.5))
    say("premul_sum", scaled[0].item())
    parts = [torch.empty(10, device=DEVICE) for _ in range(2)]
    dist.all_gather(parts, values[:10] + RANK)
    say("all_gather", parts[1][0].item())
    # Rank 0 sends 4 and 6 elements, rank 1 sends 5 and 2.
    sizes = [[4, 6], [5, 2]]
    out = torch.empty(sizes[0][RANK] + sizes[1][RANK], device=DEVICE)
    dist.all_to_all_single(out, torch.arange(sum(sizes[RANK]), device=DEVICE, dtype=torch.float32), [sizes[0][RANK], sizes[1][RANK]],
                           sizes[RANK])
    say("all_to_all_single", out.sum().item())
    if RANK == 0:
        dist.send(values, 1)
    else:
        dist.recv(values, 0)
    group = dist.new_group([0, 1])
    dist.all_reduce(values, group=group)
    dist.barrier()
    say("new_group", values[0].item())


def losses(model, data):
    """Returns the losses of training a model to return its input."""
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    found = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = (model(data[step]) - data[step]).square().mean()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def training():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(512, 8, 1024, dropout=0.0, batch_first=True)
    model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), layer, nn.Linear(512, 256)).to(DEVICE)
    sharded = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256)).to(DEVICE)
    torch.manual_seed(100 + RANK)
    data = torch.randn(STEPS, 8, 16, 256, device=DEVICE)
    say("DistributedDataParallel", losses(nn.parallel.DistributedDataParallel(model, device_ids=[DEVICE]), data))
    say("FullyShardedDataParallel", losses(FullyShardedDataParallel(sharded, device_id=DEVICE), data))


def graph():
    """Captures a call that has not run before, and replays it."""
    values = torch.ones(4096, device=DEVICE)
    dist.all_reduce(values)
    torch.cuda.synchronize()
    values.fill_(1.0 + RANK)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        dist.all_reduce(values, op=dist.ReduceOp.AVG)
    for _ in range(100):
        captured.replay()
    torch.cuda.synchronize()
    say("graph", values[0].item())


def lose_rank(rank, how, address, queue):
    """Runs one of two ranks. Rank 1 leaves in the way `how` between two calls. Rank 0 must get an exception."""
    torch.cuda.set_device(rank % torch.cuda.device_count())
    dist.init_process_group("nccl", init_method=address, rank=rank, world_size=2)
    values = torch.ones(1000, device="cuda")
    dist.all_reduce(values)
    torch.cuda.synchronize()
    if rank == 1:
        if how == "dies":
            os._exit(0)
        dist.distributed_c10d._abort_process_group()
        time.sleep(5)
        os._exit(0)
    begin = time.monotonic()
    try:
        while time.monotonic() < begin + 60:
            dist.all_reduce(values, async_op=True).wait()
            torch.cuda.synchronize()
        queue.put("no exception within 60 s")
    except Exception as error:  # pylint: disable=broad-exception-caught
        queue.put(f"{type(error).__name__} after {time.monotonic() - begin:.1f} s: {str(error).splitlines()[0]}")
        queue.close()
        queue.join_thread()
        os._exit(3)


def lost():
    """Returns whether rank 0 gets an exception in each case."""
    os.environ["TORCH_NCCL_BLOCKING_WAIT"] = "1"  # otherwise PyTorch ends the process
    all_right = True
    for number, how in enumerate(["dies", "aborts"]):
        context = torch.multiprocessing.get_context("spawn")
        queue = context.Queue()
        address = f"tcp://127.0.0.1:{29600 + number}"
        ranks = [context.Process(target=lose_rank, args=(rank, how, address, queue)) for rank in range(2)]
        for rank in ranks:
            rank.start()
        try:
            seen = queue.get(timeout=90)
        except Exception:  # pylint: disable=broad-exception-caught
            seen = f"nothing; rank 0 has exit status {ranks[0].exitcode}"
        for rank in ranks:
            rank.join(10)
            rank.kill()
        print(f"rank 1 {how}, rank 0 sees: {seen}", flush=True)
        all_right = all_right and " after " in seen
    return all_right


def main():
    torch.cuda.set_device(DEVICE)
    store, _, _ = next(dist.rendezvous("env://"))
    for turn in range(2):  # a process group can be made again
        # The store survives the group, so a rank could read the previous group's unique id.
        dist.init_process_group("nccl", store=dist.PrefixStore(f"turn{turn}", store), rank=RANK, world_size=2)
        collectives()
        training()
        graph()
        dist.destroy_process_group()


if __name__ == "__main__":
    if sys.argv[1:] == ["lost"]:
        sys.exit(0 if lost() else 1)
    main()
