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


def check_experts(fused, rank, device, packet_tokens):
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
    expect_error("expected bf16 [n, 24]", exchange.dispatch, wrong, torch.zeros(3, TOP_K, dtype=torch.long, device=device))
    return exchange


def expect_error(words, call, *arguments):
    try:
        call(*arguments)
    except (RuntimeError, ValueError) as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"no error that says '{words}'")


def values(seed, *shape):
    return torch.randint(-8, 8, shape, generator=torch.Generator().manual_seed(seed)).float()


def check_norm(fused, rank, device):
    rows, cols = 7, 40
    kernel = fused.RmsNormAllReduce(rows, cols, torch.float32, device=device.type)
    weight, before = values(50, cols), values(51, rows, cols)
    for out_dtype in (None, torch.int8):
        residual = before.clone().to(device)
        out, scales = kernel(values(rank, rows, cols).to(device), residual, weight.to(device), 1e-6, out_dtype=out_dtype)
        kept = before + sum(values(peer, rows, cols) for peer in range(RANKS))
        assert torch.equal(residual.cpu(), kept), f"rank {rank}: another residual"
        wanted = kept * torch.rsqrt((kept * kept).mean(dim=1, keepdim=True) + 1e-6) * weight
        got, allowed = out.cpu().float(), 1e-5 * wanted.abs()
        if out_dtype:
            scale = scales.cpu()
            assert scale.shape == (rows, 1)
            got, allowed = got * scale, scale * 0.51
        assert ((got - wanted).abs() <= allowed).all(), f"rank {rank}: another norm as {out_dtype}"
    without = kernel(values(rank, rows, cols).to(device), None, weight.to(device))[0].cpu()
    kept = kept - before
    assert torch.allclose(without, kept * torch.rsqrt((kept * kept).mean(dim=1, keepdim=True) + 1e-6) * weight, rtol=1e-5)
    expect_error("max_rows", kernel, torch.zeros(rows + 1, cols, device=device), None, weight.to(device))
    return kernel


def check_quantised(fused, rank, device):
    reduce, gather = fused.QuantisedAllReduce(1000, 64, device=device.type), fused.QuantisedAllGather(1000, 64, device=device.type)
    for code, error in (("fp8_e4m3", 16 / 448), ("fp8_e5m2", 4096 / 57344), ("int8", 0.5 / 127)):
        inputs = [values(10 + peer, 30, 20) for peer in range(RANKS)]
        total = reduce(inputs[rank].to(device), code).cpu()
        assert ((total - sum(inputs)).abs() <= 2 * 8 * RANKS * error * 1.01).all(), f"rank {rank}: another sum by {code}"
        parts = gather(inputs[rank].to(device), code).cpu()
        assert ((parts - torch.stack(inputs)).abs() <= 8 * error * 1.01).all(), f"rank {rank}: other parts by {code}"
    expect_error("codes", reduce, inputs[rank].to(device), "f32")
    return reduce, gather


def check_moves(fused, rank, device):
    turn, gather = fused.TransposeAllToAll(1 << 16, device=device.type), fused.GatherPermute(20, 64, device=device.type)
    matrices = [values(20 + peer, 9, RANKS * 5) for peer in range(RANKS)]
    turned = turn(matrices[rank].to(device)).cpu()
    assert torch.equal(turned, torch.stack([matrix[:, rank * 5:(rank + 1) * 5].T for matrix in matrices]))
    rows = [values(30 + peer, 20, 16) for peer in range(RANKS)]
    index = torch.randint(0, RANKS * 20, (33,), generator=torch.Generator().manual_seed(rank))
    assert torch.equal(gather(rows[rank].to(device), index.to(device)).cpu(), torch.cat(rows)[index])
    expect_error("for each of 2 ranks", turn, torch.zeros(3, 5, device=device))
    return turn, gather


def check_devices(fused):
    """A device that cannot work is refused before anything is built, and before the group is used."""
    makers = {"experts": lambda device: fused.ExpertExchange(experts_per_rank=1, top_k=1, hidden=8, max_tokens=1, device=device),
              "norm": lambda device: fused.RmsNormAllReduce(64, 128, device=device),
              "reduce": lambda device: fused.QuantisedAllReduce(1024, device=device),
              "gather": lambda device: fused.QuantisedAllGather(1024, device=device),
              "turn": lambda device: fused.TransposeAllToAll(64, device=device),
              "permute": lambda device: fused.GatherPermute(8, 8, device=device)}
    for make in makers.values():
        expect_error('on "cuda" or "cpu"', make, "meta")
        if not torch.cuda.is_available():
            expect_error('pass device="cpu"', make, "cuda")
    assert not fused.extension.cache_info().misses, "a refused kernel builds the C++ part"


def rank_main(rank, prefix, folder):
    cuda = torch.cuda.device_count() >= RANKS
    device = torch.device("cuda", rank) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    torch.distributed.init_process_group(
        "nccl" if cuda else "gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=RANKS)
    import chorale_fused as fused
    kernels = [check_experts(fused, rank, device, packet_tokens) for packet_tokens in (0, TOKENS)]
    kernels += [check_norm(fused, rank, device), *check_quantised(fused, rank, device), *check_moves(fused, rank, device)]
    if cuda:
        torch.cuda.synchronize()
    for kernel in kernels:
        kernel.close()
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
        check_devices(chorale_fused)
        chorale_fused.extension()  # builds it once, before all ranks need it at the same time
        torch.multiprocessing.spawn(rank_main, (prefix, folder), nprocs=RANKS)
    where = f"{RANKS} GPUs" if torch.cuda.device_count() >= RANKS else "the CPU"
    print(f"tokens of {RANKS} processes on {where}: experts, norms, quantised and moved rows are right")


if __name__ == "__main__":
    main()
