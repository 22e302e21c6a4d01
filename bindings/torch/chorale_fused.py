"""Fused kernels of Chorale as operators of PyTorch (docs/pytorch.md, docs/experts.md, docs/fused-kernels.md).

    import chorale_fused
    experts = chorale_fused.ExpertExchange(experts_per_rank=32, top_k=8, hidden=7168, max_tokens=4096)
    rows, _, counts, begins = experts.dispatch(x, topk_ids, topk_weights)
    y = grouped_matmul(rows, begins)                 # expert i has rows begins[i] to begins[i] + counts[i] - 1
    out = experts.combine(y, len(x))

Each class holds the memory of one kernel for a process group, and is made once by all ranks with the same arguments. Its calls are
operators in torch.ops.chorale. They run on the current stream, CUDA graphs can capture them, and torch.compile knows their shapes. Make
two objects for calls that overlap. All inputs are contiguous. The operators have no gradients. torch.compile may leave out a call whose
results nobody uses, so use them on all ranks or on none. An object keeps its memory until close(); after an error, close it and make a
new one. The C++ part is built on first use, against the Chorale that this file is
installed with; TORCH_CHORALE_PREFIX names another one. On CPU tensors it works with PyTorch 1.13 and newer, on CUDA with 2.11.

Constructors and calls raise ValueError or RuntimeError, with the values and the remedy.
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


def _has_cuda(root):
    """Returns whether the Chorale in a folder is built with CUDA."""
    targets = next(root.glob("lib*/**/ChoraleTargets.cmake"), None)
    return targets is not None and "CHORALE_WITH_CUDA" in targets.read_text()


@functools.cache
def extension():
    """Returns the C++ part, and builds it if necessary. CUDA kernels are built where this PyTorch and this Chorale have CUDA."""
    if not torch.compiled_with_cxx11_abi():
        raise RuntimeError(f"PyTorch {torch.__version__} uses the old ABI of the C++ library, and chorale uses the new one")
    root = prefix()
    library = next(root.glob("lib*/**/libchorale_executor.*"), None)
    if library is None or next(root.glob("lib*/**/ChoraleTargets.cmake"), None) is None:
        raise RuntimeError(f"the chorale in {root} is incomplete: libchorale_executor or ChoraleTargets.cmake is missing")
    toolkit = torch.utils.cpp_extension.CUDA_HOME or "/usr/local/cuda"
    library_has_cuda = _has_cuda(root)
    with_cuda = library_has_cuda and torch.version.cuda is not None
    return torch.utils.cpp_extension.load(
        name="chorale_fused_operators",
        sources=[str(HERE / name) for name in
                 ["fused_operators.cpp", "fused_kernels.cpp", *(["fused_kernels.cu"] if with_cuda else [])]],
        extra_include_paths=[str(root / "include"), str(HERE)],
        extra_cflags=["-std=c++20", "-O2", *(["-DCHORALE_WITH_CUDA"] if with_cuda else [])],
        extra_cuda_cflags=["-std=c++20", "-O3"],
        extra_ldflags=[f"-L{library.parent}", *(f"-l{name}" for name in LIBRARIES),
                       f"-Wl,--version-script={HERE / 'exports_fused.map'}",
                       *([f"-L{toolkit}/lib64", "-lcudart_static", "-ldl", "-lrt"] if library_has_cuda else [])],
    )


def _check_device(device):
    """Returns whether a device is a GPU. Raises an error, before the C++ part is built, if there is none that kernels can use."""
    kind = torch.device(device).type
    if kind == "cpu":
        return False
    if kind != "cuda":
        raise ValueError(f'device is "{device}", but kernels run on "cuda" or "cpu"')
    missing = None
    if not torch.cuda.is_available():
        missing = f"PyTorch {torch.__version__} finds no GPU that it can use"
    elif not _has_cuda(prefix()):
        missing = f"the chorale in {prefix()} is built without CUDA"
    if missing:
        raise RuntimeError(f'device is "{device}", but {missing}: pass device="cpu" for tensors on the CPU')
    return True


def _name(dtype):
    return str(dtype).removeprefix("torch.")


class _Kernel:
    """Has a number by which the operators know it."""

    def __init__(self, make, arguments, device, group, timeout):
        on_gpu = _check_device(device)
        rank, ranks = torch.distributed.get_rank(group), torch.distributed.get_world_size(group)
        address = [f"shm://chorale-fused-{uuid.uuid4().hex}"]
        first = 0 if group is None else torch.distributed.get_global_rank(group, 0)
        torch.distributed.broadcast_object_list(address, src=first, group=group)
        module = extension()
        self._number = getattr(module, make)(module.Ranks(address[0], rank, ranks, timeout, on_gpu), *arguments)

    def close(self):
        """Frees the memory. Collective; call it when all kernels of this object have ended (torch.cuda.synchronize())."""
        if self._number:
            extension().close(self._number)
            self._number = 0


class ExpertExchange(_Kernel):
    """Sends the tokens of a process group to their experts, and back.

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
    timeout: seconds that a wait may take; 0: Chorale's setting.
    """

    def __init__(self, *, experts_per_rank, top_k, hidden, max_tokens, dtype=torch.bfloat16, scales=0, result_dtype=torch.bfloat16,
                 packet_tokens=256, blocks=0, device="cuda", group=None, timeout=0.0):
        super().__init__("make_experts", (experts_per_rank, top_k, hidden, max_tokens, _name(dtype), scales, _name(result_dtype),
                                          packet_tokens, blocks), device, group, timeout)

    def dispatch(self, tokens, experts, weights=None, scales=None, *, room=-1, alignment=1, padded=False, may_drop=False):
        """Sends each token to the ranks of its experts. Collective; ranks may have different numbers of tokens.

        tokens: [n, hidden]. experts: int32 or int64 [n, top_k], -1 for none. weights: float32 [n, top_k], None for 1. scales: float32
        [n, scales].
        room: rows of the output, or rows of each expert if `padded`; -1: enough for all routes. alignment: each expert's rows begin at a
        multiple of it. may_drop: allows less room than all routes may need; tokens without room are dropped. Room for all routes is large:
        3.8 GB on 8 ranks for 4096 tokens of 7168 bfloat16, top 8.

        Returns (rows, row_scales, counts, begins). rows: [room, hidden], or [experts_per_rank, room, hidden] if `padded`. Rows that
        no token fills have any value. counts: int32 [experts_per_rank], the rows of each expert. begins: int32 [experts_per_rank + 1], the first row of each
        expert."""
        return torch.ops.chorale.expert_dispatch(self._number, tokens, experts, weights, scales, room, alignment, padded, may_drop)

    def combine(self, rows, n):
        """Returns, for each of the n tokens of the last dispatch(), the sum of weight * result over its experts: [n, hidden].

        rows: the experts' results, in the rows and the shape that dispatch() gave. Collective, once after each dispatch()."""
        return torch.ops.chorale.expert_combine(self._number, rows, n)


class RmsNormAllReduce(_Kernel):
    """All-reduces rows, adds a residual and normalises (RMSNorm), in one kernel.

    max_rows, max_cols: the largest input. dtype: float32, float16 or bfloat16. blocks, device, group, timeout: as for ExpertExchange.
    """

    def __init__(self, max_rows, max_cols, dtype=torch.bfloat16, *, blocks=0, device="cuda", group=None, timeout=0.0):
        bytes_of_row = max_cols * torch.empty(0, dtype=dtype).element_size()
        super().__init__("make_norm", (blocks, max_rows, bytes_of_row), device, group, timeout)

    def __call__(self, input, residual, weight, epsilon=1e-6, *, out_dtype=None, block=0):
        """Returns (out, scales) of input [rows, cols]: out = (residual + sum of all ranks' inputs), normalised, * weight. Collective.

        residual: [rows, cols], replaced by residual + sum; None: there is none. weight: [cols]. If residual, weight and epsilon are
        equal on all ranks, so are the bits of the results.
        out_dtype: None for the input's type; torch.int8 or an 8-bit float for codes with float32 scales. block: columns that share a
        scale; 0: a row. out = codes * scales. Without codes, scales is empty."""
        return torch.ops.chorale.rms_norm_all_reduce(self._number, input, residual, weight, epsilon, out_dtype, block)


class QuantisedAllReduce(_Kernel):
    """All-reduces tensors that travel as codes of 8 bits with a scale for each block of elements (docs/fused-kernels.md has the error).

    max_elements: the largest input. block: elements that share a scale. blocks, device, group, timeout: as for ExpertExchange."""

    def __init__(self, max_elements, block=128, *, blocks=0, device="cuda", group=None, timeout=0.0):
        super().__init__("make_all_reduce", (blocks, max_elements, block), device, group, timeout)

    def __call__(self, input, code="fp8_e4m3"):
        """Returns the sum of all ranks' inputs, of the same bits on all ranks. Collective.

        input: float32, float16 or bfloat16 of any shape. code: "fp8_e4m3", "fp8_e5m2" or "int8"."""
        return torch.ops.chorale.quantised_all_reduce(self._number, input, code)


class QuantisedAllGather(_Kernel):
    """Gathers tensors that travel as codes of 8 bits. Arguments: as for QuantisedAllReduce; max_elements counts those of one rank."""

    def __init__(self, max_elements, block=128, *, blocks=0, device="cuda", group=None, timeout=0.0):
        super().__init__("make_all_gather", (blocks, max_elements, block), device, group, timeout)

    def __call__(self, input, code="fp8_e4m3"):
        """Returns the inputs of all ranks, [ranks, *input.shape]. Collective."""
        return torch.ops.chorale.quantised_all_gather(self._number, input, code)


class TransposeAllToAll(_Kernel):
    """Sends each rank its columns of a matrix, transposed.

    max_bytes: the bytes of the largest input. blocks, device, group, timeout: as for ExpertExchange."""

    def __init__(self, max_bytes, *, blocks=0, device="cuda", group=None, timeout=0.0):
        super().__init__("make_transpose", (blocks, max_bytes), device, group, timeout)

    def __call__(self, input):
        """Returns [ranks, cols, rows] of input [rows, ranks * cols]: from each rank, this rank's columns. Collective."""
        return torch.ops.chorale.transpose_all_to_all(self._number, input)


class GatherPermute(_Kernel):
    """Gathers rows of all ranks by an index.

    max_rows, max_row_bytes: the largest input of a rank. blocks, device, group, timeout: as for ExpertExchange."""

    def __init__(self, max_rows, max_row_bytes, *, blocks=0, device="cuda", group=None, timeout=0.0):
        super().__init__("make_gather", (blocks, max_rows, max_row_bytes), device, group, timeout)

    def __call__(self, input, index):
        """Returns [len(index), cols]: row index[i] of all ranks' inputs [rows, cols], one after the other. Collective.

        index: int64. An index outside the rows gives a row of zeros."""
        return torch.ops.chorale.gather_permute(self._number, input, index)
