"""Starts the processes of a program that times PyTorch on several GPUs. torch_fused.py and torch_symmetric.py use it.

NVLink multicast stays off: a program refuses to run if a switch that turns it off has another value.
"""
import argparse
import datetime
import os
import socket
import statistics
import subprocess
import sys
import warnings

SWITCHES = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1"}
WRONG, DID_NOT_RUN = 2, 3


def fail(text, status=DID_NOT_RUN):
    print(f"{os.path.basename(sys.argv[0])}: {text}", file=sys.stderr, flush=True)
    sys.exit(status)


def no_multicast():
    """Sets the switches, and refuses to run if one already has another value."""
    for name, value in SWITCHES.items():
        found = os.environ.setdefault(name, value)
        if found != value:
            fail(f"{name} is '{found}', but must be '{value}': NVLink multicast must be off")
    os.environ.pop("TORCH_SYMMMEM", None)  # so that PyTorch takes the CUDA backend, to which the switch belongs


def join(rank, ranks, port):
    """Makes this process a rank. Returns the modules torch and torch.distributed."""
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # newer versions do not need this call
        enable_symm_mem_for_group(dist.group.WORLD.group_name)
    return torch, dist


def leave(dist):
    dist.barrier()
    dist.destroy_process_group()


def time_us(torch, dist, call, calls_in_one, rounds, warm_up):
    """Returns the microseconds of one of the `calls_in_one` calls that call() makes: the median of `rounds`, on the slowest rank."""
    times = []
    for turn in range(warm_up + rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        if turn >= warm_up:
            times.append(begin.elapsed_time(end) * 1000 / calls_in_one)
    slowest = torch.tensor(times, dtype=torch.float64, device="cuda")
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return statistics.median(slowest.tolist())


def repeat(one, calls):
    for _ in range(calls):
        one()


def captured(torch, one, calls):
    """Returns the replay of a CUDA graph of `calls` calls of one(), which runs once before."""
    recorded = torch.cuda.CUDAGraph()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        one()
    torch.cuda.synchronize()
    with torch.cuda.graph(recorded, stream=side, capture_error_mode="thread_local"):
        repeat(one, calls)
    return recorded.replay


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def declare_rank(parser):
    """Declares the arguments that run_all() adds."""
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)


def run(arguments, run_rank):
    """Runs run_rank(arguments) in a process that run_all() has started. Otherwise it starts all ranks, and ends with their status."""
    if arguments.rank is None:
        sys.exit(run_all(arguments.ranks))
    run_rank(arguments)


def run_all(ranks):
    """Starts this program again once per rank, with --rank and --port added. Returns the exit status of all of them."""
    try:
        import torch
    except ImportError as error:
        fail(f"{error}: install PyTorch, or name another interpreter")
    if torch.cuda.device_count() < ranks:
        fail(f"PyTorch {torch.__version__} sees {torch.cuda.device_count()} GPUs, but {ranks} are needed")
    command = [sys.executable, os.path.abspath(sys.argv[0]), *sys.argv[1:], "--port", str(free_port())]
    processes = [subprocess.Popen([*command, "--rank", str(rank)]) for rank in range(ranks)]
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
    return WRONG if WRONG in statuses else DID_NOT_RUN if statuses != {0} else 0
