"""torch.distributed on Chorale's plans.

    import chorale_torch
    torch.distributed.init_process_group("chorale", ...)

registers the backend "chorale" for CPU and CUDA tensors of processes on one host. Its C++ part is built the first time,
against the Chorale that this file is installed with; TORCH_CHORALE_PREFIX names another. Plans are chosen by the tables in
share/chorale/plans/tuned, and are read from share/chorale/plans/shipped, or made where there is none for so many ranks.
"""
import functools
import os
import pathlib
import re

import torch

# The C++ part uses Backend::abort() and shutdown() and c10::Stream::native_handle(), which are younger than 2.6. The
# versions between 2.6 and this one were not tried.
OLDEST = (2, 11)
if tuple(int(number) for number in re.findall(r"\d+", torch.__version__)[:2]) < OLDEST:
    raise ImportError(f"chorale_torch needs PyTorch {OLDEST[0]}.{OLDEST[1]} or newer, and this is {torch.__version__}: "
                      "install a newer one, for this Python")

import torch.distributed
import torch.utils.cpp_extension

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = ["arguments.cpp", "backend.cpp", "communicator.cpp", "p2p_connection.cpp", "module.cpp", "own_plans.cpp", "staging.cpp"]
LIBRARIES = ["chorale_executor", "chorale_dsl", "chorale_compiler", "boost_context", "boost_program_options", "sodium", "spdlog", "fmt"]


def prefix():
    """Where Chorale is installed."""
    named = os.environ.get("TORCH_CHORALE_PREFIX")
    found = pathlib.Path(named).resolve() if named else HERE.parents[2]  # this file is in share/chorale/torch
    if not (found / "include" / "chorale" / "executor.hpp").exists():
        raise RuntimeError(f"chorale is not installed in {found}: set TORCH_CHORALE_PREFIX to where it is "
                           "(cmake --install BUILD --prefix THERE)")
    return found


@functools.cache
def extension():
    """The C++ part, built if it has not been."""
    if not torch.compiled_with_cxx11_abi():
        raise RuntimeError(f"PyTorch {torch.__version__} was built with the old ABI of the C++ library, "
                           "and chorale was not")
    root = prefix()
    library = next(root.glob("lib*/**/libchorale_executor.*"), None)
    targets = next(root.glob("lib*/**/ChoraleTargets.cmake"), None)
    if library is None or targets is None:
        raise RuntimeError(f"what is installed in {root} is no whole chorale: there is no libchorale_executor, "
                           "or no ChoraleTargets.cmake")
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
    """The plan of a file. It is proved, but for the proofs that `allow` names, as in `chorale check --allow`.

    Raises ValueError with what is wrong, at the author's lines, and RuntimeError for a file that is no plan."""
    return extension().load(str(file), prove, list(allow))


def make(name, ranks, **settings):
    """The plan of a shipped algorithm, compiled and proved here: make("allreduce_ring", 6, instances=32).

    `settings` are the algorithm's, as `chorale compile NAME --help-program` lists them."""
    return extension().make(name, ranks, {key: str(value).lower() if isinstance(value, bool) else str(value)
                                          for key, value in settings.items()})


def run(plan, output, input=None, *, op=None, group=None, async_op=False):
    """Collective: `output` is what the plan makes of everybody's `input`; without that, of `output` itself.

    `op` is a torch.distributed.ReduceOp, in place of the plan's own. Tensors are contiguous, of one type and device. Streams, waiting
    and errors are as with torch.distributed: returns None, or a Work with async_op."""
    source = output if input is None else input
    work = extension().run(_backend(group, output.device), plan, source, output, op)
    if async_op:
        return work
    work.wait()
    return None


def use(plan, *, least=0, most=2**64 - 1, group=None, device="cuda"):
    """From now on the group's collectives of the plan's kind run by it, for messages of `least` to `most` bytes; of several plans the last.

    `device` says on which tensors: a group may have another backend for those on the CPU.

    The bytes are those of the input, of an all-gather those of the output. All ranks say so, between the same calls."""
    extension().use(_backend(group, device), plan, least, most)


def chosen(collective, tensor, *, group=None):
    """Which plan an "allreduce", "allgather", "reducescatter", "alltoall" or "broadcast" with this input runs by, and why."""
    return extension().chosen(_backend(group, tensor.device), collective, tensor)


def empty(*shape, dtype=torch.float32, device="cuda", group=None):
    """Collective: a tensor of zeros in memory that peers reach, where plans that reach into tensors need not copy.

    A collective takes it as it is where all ranks give tensors that were made together, at the same places in them. The memory is the
    group's: it is not given back before the group is destroyed and the last tensor is gone, so make it once."""
    device = torch.device(device)
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", torch.cuda.current_device())
    return extension().empty(_backend(group, device), list(shape), torch.empty(0, dtype=dtype, device=device))


torch.distributed.Backend.register_backend("chorale", _create, extended_api=True, devices=["cpu", "cuda"])
