#!/usr/bin/env python3
"""Builds the operators of chorale_fused and runs them on tensors of torch.distributed processes: fused_test.py FOLDER

FOLDER is a build, or where Chorale is installed. One GPU a process where there are two, else CPU tensors. Exits with 77 and says why where PyTorch is absent.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
    import torch.distributed
    import torch.multiprocessing
    import torch.utils.cpp_extension
except ImportError as error:
    print(f"skipped: PyTorch is not installed ({error})")
    sys.exit(77)

RANKS, EXPERTS, TOP_K, HIDDEN, TOKENS = 2, 3, 2, 24, 30


def route(generator, tokens):
    """Returns experts, some of them none, and weights."""
    experts = torch.stack([torch.randperm(RANKS * EXPERTS, generator=generator)[:TOP_K] for _ in range(tokens)])
    experts[torch.rand(tokens, TOP_K, generator=generator) < 0.2] = -1
    return experts, torch.randint(1, 4, (tokens, TOP_K), generator=generator).float() / 2


def inputs(rank, call):
    generator = torch.Generator().manual_seed(100 * call + rank)
    tokens = TOKENS if call == 0 else int(torch.randint(0, TOKENS + 1, (1,), generator=generator))
    x = torch.randint(-8, 8, (tokens, HIDDEN), generator=generator).bfloat16()
    return (x, *route(generator, tokens)) if tokens else (x, torch.empty(0, TOP_K, dtype=torch.long), torch.empty(0, TOP_K))


def check_call(fused, exchange, rank, call, device, ids):
    every = [inputs(peer, call) for peer in range(RANKS)]
    x, experts, weights = (tensor.to(device) for tensor in every[rank])
    rows, scales, counts, begins = exchange.dispatch(x, experts.to(ids), weights)
    assert scales.shape == (rows.shape[0], 0)
    y = torch.zeros_like(rows)
    for expert in range(EXPERTS):
        name = rank * EXPERTS + expert
        wanted = torch.cat([tokens[(ids == name).any(dim=1)] for tokens, ids, _ in every])
        begin, count = int(begins[expert]), int(counts[expert])
        assert count == len(wanted), f"rank {rank}, call {call}: expert {name} has {count} tokens, not {len(wanted)}"
        assert torch.equal(rows[begin:begin + count].cpu(), wanted), f"rank {rank}, call {call}: other rows of expert {name}"
        y[begin:begin + count] = rows[begin:begin + count] + name
    out = exchange.combine(y, len(x)).cpu()
    x, experts, weights = every[rank]
    result = (x.float()[:, None, :] + experts[:, :, None]) * weights[:, :, None] * (experts >= 0)[:, :, None]
    assert torch.equal(out.float(), result.sum(dim=1)), f"rank {rank}, call {call}: other results"


def rank_main(rank, prefix, folder):
    cuda = torch.cuda.device_count() >= RANKS
    device = torch.device("cuda", rank) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    torch.distributed.init_process_group(
        "nccl" if cuda else "gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=RANKS)
    import chorale_fused as fused
    for packet_tokens in (0, TOKENS):
        exchange = fused.ExpertExchange(experts_per_rank=EXPERTS, top_k=TOP_K, hidden=HIDDEN, max_tokens=TOKENS,
                                        packet_tokens=packet_tokens, device=device.type)
        for call in range(4):
            check_call(fused, exchange, rank, call, device, torch.int32 if call % 2 else torch.int64)
        with torch.inference_mode():  # PyTorch 1.13 lacks gradients of tensors without data
            without_data = exchange.dispatch(*(torch.empty(shape, dtype=dtype, device="meta") for shape, dtype in (
                ((5, HIDDEN), torch.bfloat16), ((5, TOP_K), torch.long), ((5, TOP_K), torch.float))), padded=True)
            assert [tuple(tensor.shape) for tensor in without_data] == [
                (EXPERTS, RANKS * TOKENS, HIDDEN), (EXPERTS, RANKS * TOKENS, 0), (EXPERTS,), (EXPERTS + 1,)]
            assert exchange.combine(without_data[0], 5).shape == (5, HIDDEN)
        wrong = torch.zeros(3, HIDDEN + 8, dtype=torch.bfloat16, device=device)
        try:
            exchange.dispatch(wrong, torch.zeros(3, TOP_K, dtype=torch.long, device=device))
        except RuntimeError as error:
            assert "expected contiguous bf16 [n, 24]" in str(error), error
        else:
            raise AssertionError("tokens of a wrong length were taken")
        if cuda:
            torch.cuda.synchronize()
        exchange.close()
    torch.distributed.destroy_process_group()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if not torch.compiled_with_cxx11_abi():
        print(f"skipped: PyTorch {torch.__version__} was built with the old ABI of the C++ library")
        sys.exit(77)
    prefix = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="chorale-fused-") as folder:
        folder = pathlib.Path(folder)
        if (prefix / "CMakeCache.txt").exists():
            build, prefix = prefix, folder / "installed"
            subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        os.environ["TORCH_EXTENSIONS_DIR"] = str(folder / "extensions")
        module = prefix / "share" / "chorale" / "torch"
        sys.path.insert(0, str(module))
        os.environ["PYTHONPATH"] = f"{module}:{os.environ.get('PYTHONPATH', '')}"
        import chorale_fused
        chorale_fused.extension()  # builds it once, before all ranks need it at the same time
        torch.multiprocessing.spawn(rank_main, (prefix, folder), nprocs=RANKS)
    where = f"{RANKS} GPUs" if torch.cuda.device_count() >= RANKS else "the CPU"
    print(f"tokens of {RANKS} processes on {where}: their experts get them, and their results come back")


if __name__ == "__main__":
    main()
