// Registers operators of PyTorch for the kernels of chorale/fused. Each has an implementation for the CPU and
// CUDA, and one for tensors without data (Meta), which torch.compile needs.

#include <torch/extension.h>
#include <torch/library.h>
#include <torch/version.h>

#include <chorale/config.hpp>
#include <chorale/other_names.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "fused_kernels.hpp"

#ifdef CHORALE_WITH_CUDA
#include <c10/core/impl/VirtualGuardImpl.h>
#endif

namespace chorale::torch_fused {
namespace {

#if TORCH_VERSION_MAJOR >= 2
template <class T>
using Optional = std::optional<T>;
#else
template <class T>
using Optional = c10::optional<T>;
#endif
using OptionalTensor = Optional<at::Tensor>;

// -- Kernels of a process group. Operators name them by numbers, because their arguments are tensors and
// numbers.

/// Holds a kernel with its memory.
struct Made {
  World world;
  std::variant<std::monostate, fused::ExpertExchange, fused::RmsNormAllReduce, fused::QuantisedAllReduce,
               fused::QuantisedAllGather, fused::TransposeAllToAll, fused::GatherPermute>
      kernel = {};
  int64_t rows = 0;  ///< of the last dispatch of an ExpertExchange
};
std::mutex mutex;
std::map<int64_t, std::shared_ptr<Made>> all_made;
int64_t last_number = 0;

Made& made(int64_t number) {
  const std::lock_guard<std::mutex> one_at_a_time(mutex);
  const auto found = all_made.find(number);
  TORCH_CHECK(found != all_made.end(), "chorale: this process has no fused kernel ", number,
              ": make one, and keep it until its last call");
  return *found->second;
}
template <class Kernel>
Kernel& kernel_of(int64_t number) {
  Kernel* const kernel = std::get_if<Kernel>(&made(number).kernel);
  TORCH_CHECK(kernel, "chorale: fused kernel ", number, " is another kernel than this operator needs");
  return *kernel;
}

/// Names the ranks that make a kernel, and where its tensors are.
struct Ranks {
  std::string address;
  int rank, ranks;
  double timeout;  ///< seconds; 0: the setting's
  bool on_gpu;

  Space space() const { return on_gpu ? Space::device : Space::host; }
};

/// Makes a kernel; collective. make(world) returns it.
template <class Make>
int64_t keep(const Ranks& ranks, const Make& make) {
  Config config = Config::load();
  if (config.timeout.from == "default" && ranks.timeout > 0) {
    config.timeout = std::chrono::nanoseconds(int64_t(ranks.timeout * 1e9));
  }
  const auto kept =
      std::make_shared<Made>(Made{World::join(ranks.address, ranks.rank, ranks.ranks, config.join())});
  kept->kernel = make(kept->world);
  const std::lock_guard<std::mutex> one_at_a_time(mutex);
  all_made.emplace(++last_number, kept);
  return last_number;
}

/// Waits until all ranks have called it, and frees the kernel. On CUDA its launches have ended.
void close_kernel(int64_t number) {
  std::shared_ptr<Made> closed;
  {
    const std::lock_guard<std::mutex> one_at_a_time(mutex);
    const auto found = all_made.find(number);
    if (found == all_made.end()) return;
    closed = std::move(found->second);
    all_made.erase(found);
  }
  closed->world.barrier();
}

DType type_named(const std::string& name) {
  const std::string here = name == "int8" ? dtype_name(DType::i8) : name_here(name);
  for (const DType type : all_dtypes) {
    if (here == dtype_name(type)) return type;
  }
  TORCH_CHECK(false, "chorale: there are no tensors of type ", name, " in fused kernels");
}
DType type_of(at::ScalarType type) { return type_named(c10::toString(type)); }
at::ScalarType scalar_type_of(DType type) {
  for (int at = 0; at < int(at::ScalarType::NumOptions); ++at) {
    const auto scalar = at::ScalarType(at);
    if (name_here(c10::toString(scalar)) == dtype_name(type)) return scalar;
  }
  TORCH_CHECK(false, "chorale: this PyTorch has no tensors of type ", dtype_name(type));
}

int64_t make_experts(const Ranks& ranks, uint32_t experts_per_rank, uint32_t top_k, uint64_t hidden,
                     uint32_t max_tokens, const std::string& token, uint32_t scales,
                     const std::string& result, uint32_t packet_tokens, uint32_t blocks) {
  fused::ExpertOptions options;
  options.experts_per_rank = experts_per_rank;
  options.top_k = top_k;
  options.hidden = hidden;
  options.max_tokens = max_tokens;
  options.token = type_named(token);
  options.scales = scales;
  options.result = type_named(result);
  options.packet_tokens = packet_tokens;
  options.blocks = blocks;
  options.space = ranks.space();
  return keep(ranks, [&](World& world) { return fused::ExpertExchange(world, options); });
}

/// Makes a kernel whose constructor takes sizes and a Setup.
template <class Kernel, class... Sizes>
int64_t make_sized(const Ranks& ranks, uint32_t blocks, Sizes... sizes) {
  fused::Setup setup;
  setup.space = ranks.space();
  setup.blocks = blocks;
  return keep(ranks, [&](World& world) { return Kernel(world, sizes..., setup); });
}

// -- Calls

bool is_on(const at::Device& device, Space space) { return device.is_cpu() == (space == Space::host); }

/// Checks that a tensor is contiguous, beside the first tensor of the call, and of this type and shape.
void check_tensor(const char* what, const at::Tensor& tensor, at::ScalarType type, at::IntArrayRef shape,
                  const at::Device& device) {
  TORCH_CHECK(tensor.scalar_type() == type && tensor.sizes() == shape, "chorale: ", what, " is ",
              tensor.scalar_type(), " ", tensor.sizes(), ", expected ", type, " ", shape);
  TORCH_CHECK(tensor.device() == device && tensor.is_contiguous(), "chorale: ", what,
              " has to be contiguous and on ", device, ", and it is on ", tensor.device());
}
/// Checks the first tensor of a call.
void check_first(const char* what, const at::Tensor& tensor, Space space, int64_t dimensions) {
  TORCH_CHECK(tensor.is_contiguous(), "chorale: ", what, " has to be contiguous");
  TORCH_CHECK(is_on(tensor.device(), space), "chorale: this kernel was made for tensors on ",
              space == Space::host ? "the CPU" : "CUDA", ", and ", what, " is on ", tensor.device());
  TORCH_CHECK(dimensions < 0 || tensor.dim() == dimensions, "chorale: ", what, " has ", tensor.dim(),
              " dimensions, expected ", dimensions);
}

const Launchers& launchers_for(const at::Tensor& tensor) {
#ifdef CHORALE_WITH_CUDA
  if (tensor.is_cuda()) return on_cuda;
#endif
  TORCH_CHECK(tensor.is_cpu(), "chorale: these operators were built without CUDA");
  return on_cpu;
}
/// Returns the current stream of a tensor's device; null on the CPU.
void* stream_for(const at::Tensor& tensor) {
#ifdef CHORALE_WITH_CUDA
  if (tensor.is_cuda()) {
    const c10::impl::VirtualGuardImpl guard(tensor.device().type());
    return guard.getStream(tensor.device()).native_handle();
  }
#else
  (void)tensor;
#endif
  return nullptr;
}

using Dispatched = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

/// Returns the outputs of a dispatch, without values.
/// \param room  -1: enough for all routes
Dispatched dispatch_outputs(int64_t number, const at::Tensor& tokens, const at::Tensor&,
                            const OptionalTensor&, const OptionalTensor&, int64_t room, int64_t alignment,
                            bool padded, bool) {
  const auto& exchange = kernel_of<fused::ExpertExchange>(number);
  const fused::ExpertOptions& of = exchange.options();
  TORCH_CHECK(alignment > 0, "chorale: the alignment is ", alignment, ", expected at least 1");
  const int64_t experts = of.experts_per_rank;
  if (room < 0) {
    room = int64_t(padded ? exchange.max_rows_of_expert() : exchange.max_rows(uint32_t(alignment)));
  }
  std::vector<int64_t> rows = padded ? std::vector<int64_t>{experts, room} : std::vector<int64_t>{room};
  std::vector<int64_t> scales = rows;
  rows.push_back(int64_t(of.hidden));
  scales.push_back(of.scales);
  const auto numbers = tokens.options().dtype(at::kInt);
  return {at::empty(rows, tokens.options()), at::empty(scales, tokens.options().dtype(at::kFloat)),
          at::empty({experts}, numbers), at::empty({experts + 1}, numbers)};
}

Dispatched dispatch(int64_t number, const at::Tensor& tokens, const at::Tensor& experts,
                    const OptionalTensor& weights, const OptionalTensor& scales, int64_t room,
                    int64_t alignment, bool padded, bool may_drop) {
  auto& exchange = kernel_of<fused::ExpertExchange>(number);
  const fused::ExpertOptions& of = exchange.options();
  check_first("tokens", tokens, of.space, 2);
  const int64_t n = tokens.size(0);
  TORCH_CHECK(type_of(tokens.scalar_type()) == of.token && tokens.size(1) == int64_t(of.hidden),
              "chorale: tokens are ", tokens.scalar_type(), " ", tokens.sizes(), ", expected ",
              dtype_name(of.token), " [n, ", of.hidden, "]");
  TORCH_CHECK(n <= int64_t(of.max_tokens), "chorale: ", n, " tokens, but the exchange was made for at most ",
              of.max_tokens, ": make it with a larger max_tokens");
  const bool wide = experts.scalar_type() != at::kInt;
  check_tensor("experts", experts, wide ? at::kLong : at::kInt, {n, int64_t(of.top_k)}, tokens.device());
  if (weights) check_tensor("weights", *weights, at::kFloat, {n, int64_t(of.top_k)}, tokens.device());
  TORCH_CHECK(scales.has_value() == (of.scales != 0), "chorale: this expert exchange takes ",
              of.scales == 0 ? "no scales" : "scales");
  if (scales) check_tensor("scales", *scales, at::kFloat, {n, int64_t(of.scales)}, tokens.device());
  Dispatched outputs =
      dispatch_outputs(number, tokens, experts, weights, scales, room, alignment, padded, false);
  const auto& [rows, row_scales, counts, begins] = outputs;
  const auto call = [&](auto id) {
    fused::Dispatch<decltype(id)> filled;
    filled.tokens = tokens.data_ptr();
    filled.scales = scales ? scales->data_ptr<float>() : nullptr;
    filled.experts = experts.data_ptr<decltype(id)>();
    filled.weights = weights ? weights->data_ptr<float>() : nullptr;
    filled.n = uint32_t(n);
    filled.rows = rows.data_ptr();
    filled.row_scales = of.scales != 0 ? row_scales.data_ptr<float>() : nullptr;
    filled.counts = counts.data_ptr<int32_t>();
    filled.begins = begins.data_ptr<int32_t>();
    filled.room = uint64_t(rows.size(padded ? 1 : 0));
    filled.alignment = uint32_t(alignment);
    filled.padded = padded;
    filled.may_drop = may_drop;
    return filled;
  };
  made(number).rows = rows.numel() / int64_t(of.hidden);
  const Launchers& on = launchers_for(tokens);
  if (wide) {
    on.dispatch_64(exchange, call(int64_t{}), stream_for(tokens));
  } else {
    on.dispatch_32(exchange, call(int32_t{}), stream_for(tokens));
  }
  return outputs;
}

at::Tensor combine_output(int64_t number, const at::Tensor& rows, int64_t n) {
  const fused::ExpertOptions& of = kernel_of<fused::ExpertExchange>(number).options();
  TORCH_CHECK(n >= 0 && n <= int64_t(of.max_tokens), "chorale: ", n, " tokens, expected 0 to ",
              of.max_tokens);
  return at::empty({n, int64_t(of.hidden)}, rows.options());
}

at::Tensor combine(int64_t number, const at::Tensor& rows, int64_t n) {
  auto& exchange = kernel_of<fused::ExpertExchange>(number);
  const fused::ExpertOptions& of = exchange.options();
  check_first("rows", rows, of.space, -1);
  TORCH_CHECK(
      type_of(rows.scalar_type()) == of.result && rows.dim() >= 2 && rows.size(-1) == int64_t(of.hidden),
      "chorale: results are ", rows.scalar_type(), " ", rows.sizes(), ", expected ", dtype_name(of.result),
      " [..., ", of.hidden, "]");
  TORCH_CHECK(rows.numel() == made(number).rows * int64_t(of.hidden), "chorale: results are ", rows.sizes(),
              ", and dispatch() gave ", made(number).rows, " rows: pass as many");
  at::Tensor out = combine_output(number, rows, n);
  launchers_for(rows).combine(exchange, {rows.data_ptr(), out.data_ptr(), uint32_t(n)}, stream_for(rows));
  return out;
}

using Normalised = std::tuple<at::Tensor, at::Tensor>;

Normalised norm_outputs(int64_t number, const at::Tensor& input, const OptionalTensor&, const at::Tensor&,
                        double, Optional<at::ScalarType> out_type, int64_t block) {
  kernel_of<fused::RmsNormAllReduce>(number);
  TORCH_CHECK(input.dim() == 2, "chorale: the input has ", input.dim(), " dimensions, expected 2");
  TORCH_CHECK(block >= 0, "chorale: the block is ", block, ", expected 0 for a row, or columns");
  const int64_t rows = input.size(0), cols = input.size(1);
  const bool codes = out_type && *out_type != input.scalar_type();
  const int64_t scales = !codes ? 0 : block == 0 ? 1 : (cols + block - 1) / block;
  return {at::empty({rows, cols}, input.options().dtype(codes ? *out_type : input.scalar_type())),
          at::empty({codes ? rows : 0, scales}, input.options().dtype(at::kFloat))};
}

Normalised norm(int64_t number, const at::Tensor& input, const OptionalTensor& residual,
                const at::Tensor& weight, double epsilon, Optional<at::ScalarType> out_type, int64_t block) {
  auto& kernel = kernel_of<fused::RmsNormAllReduce>(number);
  check_first("the input", input, kernel.setup().space, 2);
  if (residual) check_tensor("the residual", *residual, input.scalar_type(), input.sizes(), input.device());
  check_tensor("the weight", weight, input.scalar_type(), {input.size(1)}, input.device());
  Normalised made = norm_outputs(number, input, residual, weight, epsilon, out_type, block);
  const auto& [out, scales] = made;
  launchers_for(input).norm(
      kernel,
      {type_of(input.scalar_type()), input.data_ptr(), residual ? residual->data_ptr() : nullptr,
       weight.data_ptr(), float(epsilon), uint64_t(input.size(0)), uint32_t(input.size(1)),
       type_of(out.scalar_type()), out.data_ptr(), scales.data_ptr<float>(), uint32_t(block)},
      stream_for(input));
  return made;
}

at::Tensor all_reduce_output(int64_t number, const at::Tensor& input, const std::string&) {
  kernel_of<fused::QuantisedAllReduce>(number);
  return at::empty_like(input, at::MemoryFormat::Contiguous);
}
at::Tensor all_reduce(int64_t number, const at::Tensor& input, const std::string& code) {
  auto& kernel = kernel_of<fused::QuantisedAllReduce>(number);
  check_first("the input", input, kernel.setup().space, -1);
  at::Tensor made = all_reduce_output(number, input, code);
  launchers_for(input).all_reduce(kernel,
                                  {type_of(input.scalar_type()), type_named(code), input.data_ptr(),
                                   made.data_ptr(), uint64_t(input.numel())},
                                  stream_for(input));
  return made;
}

at::Tensor all_gather_output(int64_t number, const at::Tensor& input, const std::string&) {
  std::vector<int64_t> shape{kernel_of<fused::QuantisedAllGather>(number).world().ranks()};
  shape.insert(shape.end(), input.sizes().begin(), input.sizes().end());
  return at::empty(shape, input.options());
}
at::Tensor all_gather(int64_t number, const at::Tensor& input, const std::string& code) {
  auto& kernel = kernel_of<fused::QuantisedAllGather>(number);
  check_first("the input", input, kernel.setup().space, -1);
  at::Tensor made = all_gather_output(number, input, code);
  launchers_for(input).all_gather(kernel,
                                  {type_of(input.scalar_type()), type_named(code), input.data_ptr(),
                                   made.data_ptr(), uint64_t(input.numel())},
                                  stream_for(input));
  return made;
}

at::Tensor transpose_output(int64_t number, const at::Tensor& input) {
  const int64_t ranks = kernel_of<fused::TransposeAllToAll>(number).world().ranks();
  TORCH_CHECK(input.dim() == 2 && input.size(1) % ranks == 0, "chorale: the input is ", input.sizes(),
              ", expected rows of as many columns for each of ", ranks, " ranks");
  return at::empty({ranks, input.size(1) / ranks, input.size(0)}, input.options());
}
at::Tensor transpose(int64_t number, const at::Tensor& input) {
  auto& kernel = kernel_of<fused::TransposeAllToAll>(number);
  check_first("the input", input, kernel.setup().space, 2);
  at::Tensor made = transpose_output(number, input);
  launchers_for(input).transpose(kernel,
                                 {uint32_t(input.element_size()), input.data_ptr(), made.data_ptr(),
                                  uint32_t(made.size(2)), uint32_t(made.size(1))},
                                 stream_for(input));
  return made;
}

at::Tensor gather_output(int64_t number, const at::Tensor& input, const at::Tensor& index) {
  kernel_of<fused::GatherPermute>(number);
  TORCH_CHECK(input.dim() == 2, "chorale: the input has ", input.dim(), " dimensions, expected 2");
  return at::empty({index.numel(), input.size(1)}, input.options());
}
at::Tensor gather(int64_t number, const at::Tensor& input, const at::Tensor& index) {
  auto& kernel = kernel_of<fused::GatherPermute>(number);
  check_first("the input", input, kernel.setup().space, 2);
  check_tensor("the index", index, at::kLong, {index.numel()}, input.device());
  at::Tensor made = gather_output(number, input, index);
  launchers_for(input).gather(
      kernel,
      {uint32_t(input.element_size()), input.data_ptr(), made.data_ptr(), index.data_ptr<int64_t>(),
       uint64_t(input.size(0)), uint64_t(index.numel()), uint32_t(input.size(1))},
      stream_for(input));
  return made;
}

}  // namespace
}  // namespace chorale::torch_fused

TORCH_LIBRARY(chorale, library) {
  library.def(
      "expert_dispatch(int kernel, Tensor tokens, Tensor experts, Tensor? weights, Tensor? scales, int room, "
      "int alignment, bool padded, bool may_drop) -> (Tensor, Tensor, Tensor, Tensor)");
  library.def("expert_combine(int kernel, Tensor rows, int n) -> Tensor");
  library.def(
      "rms_norm_all_reduce(int kernel, Tensor input, Tensor(a!)? residual, Tensor weight, float epsilon, "
      "ScalarType? out_type, int block) -> (Tensor, Tensor)");
  library.def("quantised_all_reduce(int kernel, Tensor input, str code) -> Tensor");
  library.def("quantised_all_gather(int kernel, Tensor input, str code) -> Tensor");
  library.def("transpose_all_to_all(int kernel, Tensor input) -> Tensor");
  library.def("gather_permute(int kernel, Tensor input, Tensor index) -> Tensor");
}

namespace {
void register_kernels(torch::Library& library) {
  using namespace chorale::torch_fused;
  library.impl("expert_dispatch", dispatch);
  library.impl("expert_combine", combine);
  library.impl("rms_norm_all_reduce", norm);
  library.impl("quantised_all_reduce", all_reduce);
  library.impl("quantised_all_gather", all_gather);
  library.impl("transpose_all_to_all", transpose);
  library.impl("gather_permute", gather);
}
}  // namespace
TORCH_LIBRARY_IMPL(chorale, CPU, library) { register_kernels(library); }
TORCH_LIBRARY_IMPL(chorale, CUDA, library) { register_kernels(library); }
TORCH_LIBRARY_IMPL(chorale, Meta, library) {
  using namespace chorale::torch_fused;
  library.impl("expert_dispatch", dispatch_outputs);
  library.impl("expert_combine", combine_output);
  library.impl("rms_norm_all_reduce", norm_outputs);
  library.impl("quantised_all_reduce", all_reduce_output);
  library.impl("quantised_all_gather", all_gather_output);
  library.impl("transpose_all_to_all", transpose_output);
  library.impl("gather_permute", gather_output);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  using namespace chorale;
  using namespace chorale::torch_fused;
  // These wait for the other ranks, so they let other threads of Python run.
  const auto collective = [&module](const char* name, auto function) {
    module.def(name, function, pybind11::call_guard<pybind11::gil_scoped_release>());
  };
  pybind11::class_<Ranks>(module, "Ranks")
      .def(pybind11::init([](std::string address, int rank, int ranks, double timeout, bool on_gpu) {
        return Ranks{std::move(address), rank, ranks, timeout, on_gpu};
      }));
  collective("make_experts", make_experts);
  collective("make_norm", make_sized<fused::RmsNormAllReduce, uint64_t, uint64_t>);
  collective("make_all_reduce", make_sized<fused::QuantisedAllReduce, uint64_t, uint32_t>);
  collective("make_all_gather", make_sized<fused::QuantisedAllGather, uint64_t, uint32_t>);
  collective("make_transpose", make_sized<fused::TransposeAllToAll, uint64_t>);
  collective("make_gather", make_sized<fused::GatherPermute, uint64_t, uint64_t>);
  collective("close", close_kernel);
}
