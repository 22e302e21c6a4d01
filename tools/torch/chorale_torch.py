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

import torch
import torch.distributed
import torch.utils.cpp_extension

HERE = pathlib.Path(__file__).resolve().parent
LIBRARIES = ["chorale_executor", "chorale_dsl", "chorale_compiler", "boost_context", "boost_program_options", "spdlog", "fmt"]


def prefix():
    """Where Chorale is installed."""
    named = os.environ.get("TORCH_CHORALE_PREFIX")
    found = pathlib.Path(named).resolve() if named else HERE.parents[2]  # of share/chorale/torch
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
        sources=[str(HERE / "backend.cpp"), str(HERE / "communicator.cpp"), str(HERE / "line.cpp")],
        extra_include_paths=[str(root / "include"), str(HERE), *([f"{toolkit}/include"] if with_cuda else [])],
        extra_cflags=["-std=c++20", "-O1", *(["-DCHORALE_WITH_CUDA"] if with_cuda else [])],
        extra_ldflags=[*(str(program) for program in sorted(root.glob("lib*/**/chorale_plans/**/*.o"))),
                       f"-L{library.parent}", *(f"-l{name}" for name in LIBRARIES),
                       *([f"-L{toolkit}/lib64", "-lcudart_static", "-ldl", "-lrt"] if with_cuda else [])],
    )


def _create(options, _):
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    return extension().create(options.store, options.group_rank, options.group_size, options.timeout.total_seconds(),
                              str(prefix() / "share" / "chorale" / "plans"), gpu)


torch.distributed.Backend.register_backend("chorale", _create, extended_api=True, devices=["cpu", "cuda"])
