"""Fused kernels of Chorale as operators of PyTorch: tokens to their experts and back (docs/experts.md).

    import chorale_fused
    experts = chorale_fused.ExpertExchange(experts_per_rank=32, top_k=8, hidden=7168, max_tokens=4096)
    rows, _, counts, begins = experts.dispatch(x, topk_ids, topk_weights)
    y = grouped_matmul(rows, begins)                 # expert i has rows begins[i] to begins[i] + counts[i] - 1
    out = experts.combine(y, len(x))

The operators are torch.ops.chorale.expert_dispatch and expert_combine. They run on the current stream, CUDA graphs can capture them,
and torch.compile knows their shapes. All counts and routes stay on the device. The C++ part is built on first use, against the Chorale
that this file is installed with; TORCH_CHORALE_PREFIX names another one. On CPU tensors it works with PyTorch 1.13 and newer.
"""
import functools
import os
import pathlib
import uuid

import torch
import torch.distributed
import torch.utils.cpp_extension

HERE = pathlib.Path(__file__).resolve().parent
LIBRARIES = ["chorale_executor", "chorale_compiler", "boost_context", "boost_program_options", "sodium", "spdlog", "fmt"]


def prefix():
    """Returns the folder in which Chorale is installed."""
    named = os.environ.get("TORCH_CHORALE_PREFIX")
    found = pathlib.Path(named).resolve() if named else HERE.parents[2]  # this file is in share/chorale/torch
    if not (found / "include" / "chorale" / "fused" / "experts.hpp").exists():
        raise RuntimeError(f"chorale is not installed in {found}: set TORCH_CHORALE_PREFIX to the folder of its installation "
                           "(cmake --install BUILD --prefix FOLDER)")
    return found


@functools.cache
def extension():
    """Returns the C++ part, and builds it if necessary. CUDA kernels are built where this PyTorch and this Chorale have CUDA."""
    if not torch.compiled_with_cxx11_abi():
        raise RuntimeError(f"PyTorch {torch.__version__} uses the old ABI of the C++ library, and chorale uses the new one")
    root = prefix()
    library = next(root.glob("lib*/**/libchorale_executor.*"), None)
    targets = next(root.glob("lib*/**/ChoraleTargets.cmake"), None)
    if library is None or targets is None:
        raise RuntimeError(f"the chorale in {root} is incomplete: libchorale_executor or ChoraleTargets.cmake is missing")
    toolkit = torch.utils.cpp_extension.CUDA_HOME or "/usr/local/cuda"
    library_has_cuda = "CHORALE_WITH_CUDA" in targets.read_text()
    with_cuda = library_has_cuda and torch.version.cuda is not None
    return torch.utils.cpp_extension.load(
        name="chorale_fused_operators",
        sources=[str(HERE / name) for name in ["fused_operators.cpp", *(["fused_kernels.cu"] if with_cuda else [])]],
        extra_include_paths=[str(root / "include"), str(HERE)],
        extra_cflags=["-std=c++20", "-O2", *(["-DCHORALE_WITH_CUDA"] if with_cuda else [])],
        extra_cuda_cflags=["-std=c++20", "-O3"],
        extra_ldflags=[f"-L{library.parent}", *(f"-l{name}" for name in LIBRARIES),
                       f"-Wl,--version-script={HERE / 'exports_fused.map'}",
                       *([f"-L{toolkit}/lib64", "-lcudart_static", "-ldl", "-lrt"] if library_has_cuda else [])],
    )


class ExpertExchange:
    """Sends the tokens of a process group to their experts, and back. Collective: all ranks of the group make it with the same arguments.

    experts_per_rank: rank r has the experts r * experts_per_rank and following.
    top_k: the number of experts that each token names.
    hidden: elements of a token. A token and a result are multiples of 16 bytes.
    max_tokens: the most tokens of a rank in one call.
    dtype, result_dtype: the types of tokens and of results. Results are float32, float16 or bfloat16.
    scales: float32 numbers that travel with each token, such as one per block of 128 elements of fp8.
    packet_tokens: a rank with at most this many tokens in a call sends them as packets, which is faster for few tokens.
    blocks: thread blocks of each kernel; 0: Chorale chooses.
    device: "cuda" or "cpu", where all tensors are.
    group: a torch.distributed process group of one host; None: the default group.

    Raises RuntimeError, on all ranks, for arguments that are out of range, and if a rank does not make it in time.
    """

    def __init__(self, *, experts_per_rank, top_k, hidden, max_tokens, dtype=torch.bfloat16, scales=0, result_dtype=torch.bfloat16,
                 packet_tokens=256, blocks=0, device="cuda", group=None, timeout=0.0):
        rank, ranks = torch.distributed.get_rank(group), torch.distributed.get_world_size(group)
        address = [f"shm://chorale-fused-{uuid.uuid4().hex}"]
        first = 0 if group is None else torch.distributed.get_global_rank(group, 0)
        torch.distributed.broadcast_object_list(address, src=first, group=group)
        self._number = extension().make_experts(
            address[0], rank, ranks, timeout, torch.device(device).type == "cuda", experts_per_rank, top_k, hidden, max_tokens,
            str(dtype).removeprefix("torch."), scales, str(result_dtype).removeprefix("torch."), packet_tokens, blocks)

    def dispatch(self, tokens, experts, weights=None, scales=None, *, room=-1, alignment=1, padded=False, may_drop=False):
        """Sends each token to the ranks of its experts. Collective; ranks may have different numbers of tokens.

        tokens: [n, hidden]. experts: int32 or int64 [n, top_k], -1 for none. weights: float32 [n, top_k], None for 1. scales: float32
        [n, scales].
        room: rows of the output, or rows of each expert if `padded`; -1: enough for all routes. alignment: each expert's rows begin at a
        multiple of it. may_drop: allows less room than all routes may need; tokens without room are dropped.

        Returns (rows, row_scales, counts, begins). rows: [room, hidden], or [experts_per_rank, room, hidden] if `padded`. Rows that
        no token fills have any value. counts: int32 [experts_per_rank]. begins: int32 [experts_per_rank + 1], the first row of each
        expert.
        Raises RuntimeError for tensors of a wrong type, shape or device, and if a rank has died."""
        return torch.ops.chorale.expert_dispatch(self._number, tokens, experts, weights, scales, room, alignment, padded, may_drop)

    def combine(self, rows, n):
        """Returns, for each of the n tokens of the last dispatch(), the sum of weight * result over its experts: [n, hidden].

        rows: the experts' results, in the rows that dispatch() gave. Collective, once after each dispatch()."""
        return torch.ops.chorale.expert_combine(self._number, rows, n)

    def close(self):
        """Frees the memory. Collective; call it when all kernels of the exchange have ended."""
        if self._number:
            extension().close_experts(self._number)
            self._number = 0
