#!/usr/bin/env python3
"""Builds the PyTorch extension and runs shipped plans on tensors of torch.distributed processes: test.py FOLDER

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

HERE = pathlib.Path(__file__).resolve().parent
RANKS = 2
LIBRARIES = ["chorale_executor", "chorale_compiler", "boost_context", "boost_program_options", "sodium", "spdlog", "fmt"]


def extension(prefix, folder):
    """Returns the module, and builds it on the first call."""
    targets = (prefix / "lib" / "cmake" / "Chorale" / "ChoraleTargets.cmake").read_text()
    toolkit = torch.utils.cpp_extension.CUDA_HOME or "/usr/local/cuda"
    cuda = [f"-L{toolkit}/lib64", "-lcudart_static", "-ldl", "-lrt"] if "CHORALE_WITH_CUDA" in targets else []
    return torch.utils.cpp_extension.load(
        name="chorale_torch",
        sources=[str(HERE / "extension.cpp")],
        build_directory=str(folder),
        extra_include_paths=[str(prefix / "include")],
        extra_cflags=["-std=c++20", "-O1"],
        extra_ldflags=[f"-L{prefix / 'lib'}", *(f"-l{name}" for name in LIBRARIES), *cuda],
    )


def rank_main(rank, prefix, folder, address):
    cuda = torch.cuda.device_count() >= RANKS
    device = torch.device("cuda", rank) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    torch.distributed.init_process_group(
        "nccl" if cuda else "gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=RANKS)
    chorale = extension(prefix, folder)
    plans = prefix / "share" / "chorale" / "plans" / "shipped"
    communicator = chorale.Communicator(address, rank, RANKS, "cuda" if cuda else "cpu")
    stream = torch.cuda.current_stream().cuda_stream if cuda else 0

    reduce = chorale.load(str(plans / f"allreduce_ring_{RANKS}.json"))
    gather = chorale.load(str(plans / f"allgather_direct_{RANKS}.json"))
    for dtype in (torch.float32, torch.bfloat16, torch.int32):
        # The values are small whole numbers, whose sums are exact in every type and order. Some other backends do not
        # take every type.
        mine = torch.randint(-50, 50, (10007,), generator=torch.Generator().manual_seed(rank)).to(device, dtype)
        total, expected = torch.empty_like(mine), mine.double()
        communicator.run(reduce, mine, total, stream)
        torch.distributed.all_reduce(expected)
        communicator.synchronize(stream)
        assert torch.equal(total.double(), expected), f"rank {rank}: all-reduce of {dtype}"

        parts = torch.empty(RANKS * mine.numel(), device=device, dtype=dtype)
        expected = [torch.empty_like(mine).double() for _ in range(RANKS)]
        communicator.run(gather, mine, parts, stream)
        torch.distributed.all_gather(expected, mine.double())
        communicator.synchronize(stream)
        assert torch.equal(parts.double(), torch.cat(expected)), f"rank {rank}: all-gather of {dtype}"

    try:
        communicator.run(reduce, mine, mine[:5].clone(), stream)
    except ValueError as error:
        assert "but the tensors have" in str(error), error
    else:
        raise AssertionError("tensors of the wrong size were taken")
    communicator.barrier()
    torch.distributed.destroy_process_group()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if not torch.compiled_with_cxx11_abi():
        print(f"skipped: PyTorch {torch.__version__} was built with the old ABI of the C++ library")
        sys.exit(77)
    prefix = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="chorale-torch-") as folder:
        folder = pathlib.Path(folder)
        if (prefix / "CMakeCache.txt").exists():
            build, prefix = prefix, folder / "installed"
            subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        extension(prefix, folder)  # builds it once, before all ranks need it at the same time
        torch.multiprocessing.spawn(
            rank_main, (prefix, folder, f"shm://chorale-torch-{os.getpid()}"), nprocs=RANKS)
    where = f"{RANKS} GPUs" if torch.cuda.device_count() >= RANKS else "the CPU"
    print(f"all-reduce and all-gather on tensors of {RANKS} processes on {where}: as torch.distributed has them")


if __name__ == "__main__":
    main()
