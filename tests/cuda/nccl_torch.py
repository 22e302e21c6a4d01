#!/usr/bin/env python3
"""Trains small models on two GPUs by torch.distributed with the backend nccl, and prints the results: nccl_torch.py under torchrun"""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel

RANK = int(os.environ["RANK"])
DEVICE = torch.device("cuda", RANK)
STEPS = 50


def say(*words):
    if RANK == 0:
        print(*words, flush=True)


def collectives():
    values = torch.full((1000,), float(RANK + 1), device=DEVICE)
    dist.all_reduce(values)
    say("all_reduce", values[0].item())
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
    say("DistributedDataParallel", losses(nn.parallel.DistributedDataParallel(model, device_ids=[RANK]), data))
    say("FullyShardedDataParallel", losses(FullyShardedDataParallel(sharded, device_id=RANK), data))


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


def main():
    torch.cuda.set_device(RANK)
    for _ in range(2):  # a process group can be made again
        dist.init_process_group("nccl")
        collectives()
        training()
        graph()
        dist.destroy_process_group()


main()
