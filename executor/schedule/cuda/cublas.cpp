#include "cublas.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <type_traits>

#include "executor/cuda/device/device.hpp"
#include "executor/cuda/device/device_memory.hpp"

namespace chorale::schedule_run {
namespace {

// This is the part of cuBLAS's binary interface that is used here. With these declarations, neither building
// nor starting needs cuBLAS. Its functions return 0 on success.
using Handle = struct cublasContext*;
constexpr int op_none = 0, op_transposed = 1;
constexpr int default_algorithm = -1;
constexpr int compute_f32 = 68, compute_f64 = 70, compute_tf32 = 77;

/// Returns the cudaDataType of a type, or -1 if cuBLAS's products do not support it.
int type_number(DType type) {
  switch (type) {
    case DType::f32:
      return 0;
    case DType::f64:
      return 1;
    case DType::f16:
      return 2;
    case DType::bf16:
      return 14;
    default:
      return -1;
  }
}

/// Holds the functions of the library, found by name.
struct Library {
  int (*cublasCreate_v2)(Handle*) = nullptr;
  int (*cublasDestroy_v2)(Handle) = nullptr;
  int (*cublasSetStream_v2)(Handle, cudaStream_t) = nullptr;
  int (*cublasSetWorkspace_v2)(Handle, void*, size_t) = nullptr;
  const char* (*cublasGetStatusString)(int) = nullptr;
  int (*cublasGemmStridedBatchedEx)(Handle, int, int, int, int, int, const void*, const void*, int, int,
                                    long long, const void*, int, int, long long, const void*, void*, int, int,
                                    long long, int, int, int) = nullptr;
  std::string problem;

  /// Returns the library, which is loaded once per process and never unloaded.
  static const Library& get() {
    static const Library library;
    return library;
  }

 private:
  Library() {
    void* handle = nullptr;
    const std::string major = std::to_string(CUDART_VERSION / 1000);
    for (const std::string& name : {"libcublas.so." + major, std::string("libcublas.so")}) {
      if (!handle) handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    }
    if (!handle) {
      const char* const why = ::dlerror();
      problem = std::string("cannot load cuBLAS: ") + (why ? why : "libcublas.so is not found");
      return;
    }
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, name));
      if (!function && problem.empty()) problem = std::string("libcublas.so has no ") + name;
    };
#define FIND(name) find(name, #name)
    FIND(cublasCreate_v2);
    FIND(cublasDestroy_v2);
    FIND(cublasSetStream_v2);
    FIND(cublasSetWorkspace_v2);
    FIND(cublasGetStatusString);
    FIND(cublasGemmStridedBatchedEx);
#undef FIND
  }
};

void must(int result, const char* function) {
  if (result == 0) return;
  throw RunError(RunError::Reason::other,
                 fmt::format("{}: {}", function, Library::get().cublasGetStatusString(result)));
}

/// Describes a row-major matrix as cuBLAS, which is column-major, sees it.
struct Operand {
  int op = -1;         ///< -1: neither axis is contiguous
  uint64_t pitch = 0;  ///< at least 1, even without elements

  Operand(const Product::Strides& strides, uint64_t rows, uint64_t columns) {
    if (strides.column == 1 || columns == 1) {
      op = op_none;
      pitch = std::max({strides.row, columns, uint64_t(1)});
    } else if (strides.row == 1 || rows == 1) {
      op = op_transposed;
      pitch = std::max({strides.column, rows, uint64_t(1)});
    }
  }
};

}  // namespace

const std::string& Cublas::problem() { return Library::get().problem; }

std::string Cublas::refuses(const HostCall& call) {
  const TensorView& c = call.writes[0];
  if (type_number(c.dtype) < 0)
    return fmt::format(
        "{} of {} on CUDA: f32, f16, bf16 and f64 are built in; provide your own function '{}'", call.name,
        dtype_name(c.dtype), call.name);
  if (!problem().empty())
    return fmt::format("{}: {}; provide your own function '{}'", call.name, problem(), call.name);
  const Product of = product_of(call);
  const Operand to(of.c, of.m, of.n), left(of.a, of.m, of.k), right(of.b, of.k, of.n);
  if (to.op != op_none || left.op < 0 || right.op < 0)
    return fmt::format(
        "{} to {}: cuBLAS needs a contiguous axis in each matrix, and in the result it must be the last",
        call.name, c.text());
  if (std::max({of.m, of.n, of.k, of.batches, to.pitch, left.pitch, right.pitch}) > INT_MAX)
    return fmt::format("{} to {}: an extent or pitch is above 2^31", call.name, c.text());
  return "";
}

struct Cublas::State {
  static constexpr size_t workspace_bytes = 32 << 20;  // the size that NVIDIA recommends for Hopper
  Handle handle = nullptr;
  std::vector<cuda::DeviceMemory> workspaces;  // by stream: products of several streams run at the same time
};

Cublas::Cublas(uint32_t streams) : state_(std::make_unique<State>()) {
  must(Library::get().cublasCreate_v2(&state_->handle), "cublasCreate");
  state_->workspaces.resize(streams);
}

Cublas::~Cublas() {
  if (state_->handle) Library::get().cublasDestroy_v2(state_->handle);
}

void Cublas::multiply(const HostCall& call, bool accumulate) {
  const Library& library = Library::get();
  const Product of = product_of(call);
  if (of.m == 0 || of.n == 0 || of.batches == 0) return;
  cuda::DeviceMemory& workspace = state_->workspaces[call.stream_index];
  if (!workspace.data()) {
    const cuda::OutsideCapture outside;
    workspace = cuda::DeviceMemory(State::workspace_bytes, "a workspace of cuBLAS");
  }
  must(library.cublasSetStream_v2(state_->handle, static_cast<cudaStream_t>(call.stream)), "cublasSetStream");
  must(library.cublasSetWorkspace_v2(state_->handle, workspace.data(), State::workspace_bytes),
       "cublasSetWorkspace");
  const DType dtype = call.writes[0].dtype;
  const int type = type_number(dtype);
  const bool wide = dtype == DType::f64;
  const int compute = wide                                               ? compute_f64
                      : dtype == DType::f32 && call.attribute("tf32", 0) ? compute_tf32
                                                                         : compute_f32;
  const double one64 = 1, zero64 = 0;
  const float one32 = 1, zero32 = 0;
  const void* const alpha = wide ? static_cast<const void*>(&one64) : &one32;
  const void* const nothing = wide ? static_cast<const void*>(&zero64) : &zero32;
  const Operand to(of.c, of.m, of.n), left(of.a, of.m, of.k), right(of.b, of.k, of.n);
  // Row-major C = A B is C' = B' A' in column-major order.
  must(library.cublasGemmStridedBatchedEx(
           state_->handle, right.op, left.op, int(of.n), int(of.m), int(of.k), alpha, call.reads[1].data,
           type, int(right.pitch), (long long)of.b.batch, call.reads[0].data, type, int(left.pitch),
           (long long)of.a.batch, accumulate ? alpha : nothing, call.writes[0].data, type, int(to.pitch),
           (long long)of.c.batch, int(of.batches), compute, default_algorithm),
       "cublasGemmStridedBatchedEx");
}

}  // namespace chorale::schedule_run
