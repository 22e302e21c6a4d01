"""Runs torch.distributed on Chorale's plans.

    import chorale_torch
    torch.distributed.init_process_group("chorale", ...)

The import registers the backend "chorale" for CPU and CUDA tensors of processes on one host. It builds the backend's C++
part on first use, against the Chorale that this file is installed with; TORCH_CHORALE_PREFIX names another one. The tables
in share/chorale/plans/tuned choose the plans. Plans are read from share/chorale/plans/shipped, or made if none is shipped
for this number of ranks.
"""
import functools
import os
import pathlib
import re

import torch

# The C++ part uses Backend::abort() and shutdown() and c10::Stream::native_handle(), which newer versions than 2.6
# have. We have not tried the versions between 2.6 and this one.
OLDEST = (2, 11)
if tuple(int(number) for number in re.findall(r"\d+", torch.__version__)[:2]) < OLDEST:
    raise ImportError(f"chorale_torch needs PyTorch {OLDEST[0]}.{OLDEST[1]} or newer, and this is {torch.__version__}: "
                      "install a newer one, for this Python")

import torch.distributed
import torch.utils.cpp_extension

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = ["arguments.cpp", "backend.cpp", "communicator.cpp", "p2p_connection.cpp", "module.cpp", "own_plans.cpp",
           "stream_order.cpp"]
LIBRARIES = ["chorale_executor", "chorale_dsl", "chorale_compiler", "boost_context", "boost_program_options", "sodium", "spdlog", "fmt"]


def prefix():
    """Returns the folder in which Chorale is installed."""
    named = os.environ.get("TORCH_CHORALE_PREFIX")
    found = pathlib.Path(named).resolve() if named else HERE.parents[2]  # this file is in share/chorale/torch
    if not (found / "include" / "chorale" / "executor.hpp").exists():
        raise RuntimeError(f"chorale is not installed in {found}: set TORCH_CHORALE_PREFIX to the folder of its installation "
                           "(cmake --install BUILD --prefix FOLDER)")
    return found


@functools.cache
def extension():
    """Returns the C++ part, and builds it if necessary."""
    if not torch.compiled_with_cxx11_abi():
        raise RuntimeError(f"PyTorch {torch.__version__} uses the old ABI of the C++ library, and chorale uses the new one")
    root = prefix()
    library = next(root.glob("lib*/**/libchorale_executor.*"), None)
    targets = next(root.glob("lib*/**/ChoraleTargets.cmake"), None)
    if library is None or targets is None:
        raise RuntimeError(f"the chorale in {root} is incomplete: libchorale_executor or ChoraleTargets.cmake is missing")
    toolkit = torch.utils.cpp_extension.CUDA_HOME or "/usr/local/cuda"
    with_cuda = "CHORALE_WITH_CUDA" in targets.read_text()
    return torch.utils.cpp_extension.load(
        name="chorale_c10d",
        sources=[str(HERE / name) for name in SOURCES],
        extra_include_paths=[str(root / "include"), str(HERE), *([f"{toolkit}/include"] if with_cuda else [])],
        extra_cflags=["-std=c++20", "-O1", *(["-DCHORALE_WITH_CUDA"] if with_cuda else [])],
        extra_ldflags=[*(str(program) for program in sorted(root.glob("lib*/**/chorale_plans/**/*.o"))),
                       f"-L{library.parent}", *(f"-l{name}" for name in LIBRARIES),
                       f"-Wl,--version-script={HERE / 'exports.map'}",
                       *([f"-L{toolkit}/lib64", "-lcudart_static", "-ldl", "-lrt"] if with_cuda else [])],
    )


def _create(options, _):
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    return extension().create(options.store, options.group_rank, options.group_size, options.timeout.total_seconds(),
                              str(prefix() / "share" / "chorale" / "plans"), gpu)


def _backend(group, device):
    group = torch.distributed.group.WORLD if group is None else group
    return group._get_backend(torch.device(device))


def load(file, *, prove=True, allow=()):
    """Loads a plan from a file and proves it, except for the proofs that `allow` names, as in `chorale check --allow`.

    Raises ValueError with the findings, at the author's lines, and RuntimeError for a file that is not a plan."""
    return extension().load(str(file), prove, list(allow))


def make(name, ranks, **settings):
    """Compiles and proves the plan of a shipped algorithm: make("allreduce_ring", 6, instances=32).

    `settings` are the algorithm's parameters, which `chorale compile NAME --help-program` lists."""
    return extension().make(name, ranks, {key: str(value).lower() if isinstance(value, bool) else str(value)
                                          for key, value in settings.items()})


def run(plan, output, input=None, *, op=None, group=None, async_op=False):
    """Collective: runs the plan from every rank's `input` to `output`; without `input`, in place on `output`.

    `op` is a torch.distributed.ReduceOp that replaces the plan's operator. Tensors are contiguous, and have one type and device.
    Streams, waiting and errors are as with torch.distributed. Returns None, or a Work if `async_op` is true."""
    source = output if input is None else input
    work = extension().run(_backend(group, output.device), plan, source, output, op, async_op)
    if async_op:
        return work
    work.wait()
    return None


def use(plan, *, least=0, most=2**64 - 1, group=None, device="cuda"):
    """Makes the group run its collectives of the plan's kind with this plan, for messages of `least` to `most` bytes.

    If several plans fit, the last one is used. `device` says for which tensors: a group may have another backend for tensors on the CPU.

    The bytes are the bytes of the input, or of the output for an all-gather. All ranks must call this at the same point of their
    sequence of calls."""
    extension().use(_backend(group, device), plan, least, most)


def chosen(collective, tensor, *, group=None):
    """Returns which plan an "allreduce", "allgather", "reducescatter", "alltoall" or "broadcast" of this input runs, and why."""
    return extension().chosen(_backend(group, tensor.device), collective, tensor)


def empty(*shape, dtype=torch.float32, device="cuda", group=None):
    """Collective: makes a tensor of zeros in memory that peers reach, so that plans that reach into tensors need not copy.

    A collective uses the tensor directly if all ranks pass tensors from the same call of empty(), at the same offsets. The memory
    belongs to the group. It is freed only when the group is destroyed and the last tensor is gone, so make each tensor once."""
    device = torch.device(device)
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", torch.cuda.current_device())
    return extension().empty(_backend(group, device), list(shape), torch.empty(0, dtype=dtype, device=device))


torch.distributed.Backend.register_backend("chorale", _create, extended_api=True, devices=["cpu", "cuda"])
