// Registers operators of PyTorch for the kernels of chorale/fused. Each has an implementation for the CPU,
// for CUDA, and for tensors without data (Meta), which torch.compile needs.

#include <torch/extension.h>
#include <torch/library.h>
#include <torch/version.h>

#include <chorale/config.hpp>
#include <chorale/launch_cpu.hpp>
#include <chorale/other_names.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>

#include "fused_kernels.hpp"

#ifdef CHORALE_WITH_CUDA
#include <c10/core/impl/VirtualGuardImpl.h>
#endif

namespace chorale::torch_fused {
namespace {

using fused::ExpertExchange;
using fused::ExpertOptions;

#if TORCH_VERSION_MAJOR >= 2
using OptionalTensor = std::optional<at::Tensor>;
#else
using OptionalTensor = c10::optional<at::Tensor>;
#endif

/// Holds an exchange of a process group. Operators name it by a number, because their arguments are tensors
/// and numbers.
struct Experts {
  World world;
  std::optional<ExpertExchange> exchange;
};
std::mutex mutex;
std::map<int64_t, std::shared_ptr<Experts>> all_experts;
int64_t last_number = 0;

Experts& experts_of(int64_t number) {
  const std::lock_guard<std::mutex> one_at_a_time(mutex);
  const auto found = all_experts.find(number);
  TORCH_CHECK(found != all_experts.end(), "chorale: there is no expert exchange ", number,
              " in this process: make one, and keep it until the last call");
  return *found->second;
}

at::ScalarType scalar_type_of(DType type) {
  for (int at = 0; at < int(at::ScalarType::NumOptions); ++at) {
    const auto scalar = at::ScalarType(at);
    if (name_here(c10::toString(scalar)) == dtype_name(type)) return scalar;
  }
  TORCH_CHECK(false, "chorale: this PyTorch has no type ", dtype_name(type));
}

/// Fills in what Python passes as words and numbers, and makes the exchange; collective.
int64_t make_experts(const std::string& address, int rank, int ranks, double timeout, bool on_gpu,
                     uint32_t experts_per_rank, uint32_t top_k, uint64_t hidden, uint32_t max_tokens,
                     const std::string& token, uint32_t scales, const std::string& result,
                     uint32_t packet_tokens, uint32_t blocks) {
  const auto type_of = [](const std::string& name) {
    for (const DType type : all_dtypes) {
      if (name_here(name) == dtype_name(type)) return type;
    }
    TORCH_CHECK(false, "chorale: no tokens or results of type ", name);
  };
  ExpertOptions options;
  options.experts_per_rank = experts_per_rank;
  options.top_k = top_k;
  options.hidden = hidden;
  options.max_tokens = max_tokens;
  options.token = type_of(token);
  options.scales = scales;
  options.result = type_of(result);
  options.packet_tokens = packet_tokens;
  options.blocks = blocks;
  options.space = on_gpu ? Space::device : Space::host;
  Config config = Config::load();
  if (config.timeout.from == "default" && timeout > 0) {
    config.timeout = std::chrono::nanoseconds(int64_t(timeout * 1e9));
  }
  auto made = std::make_shared<Experts>(Experts{World::join(address, rank, ranks, config.join()), {}});
  made->exchange.emplace(made->world, options);
  const std::lock_guard<std::mutex> one_at_a_time(mutex);
  all_experts.emplace(++last_number, std::move(made));
  return last_number;
}

/// Waits until all ranks have called it, and frees the exchange. On CUDA its launches have ended.
void close_experts(int64_t number) {
  std::shared_ptr<Experts> closed;
  {
    const std::lock_guard<std::mutex> one_at_a_time(mutex);
    const auto found = all_experts.find(number);
    if (found == all_experts.end()) return;
    closed = std::move(found->second);
    all_experts.erase(found);
  }
  closed->world.barrier();
}

using Dispatched = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

/// Returns the outputs of a dispatch, without values.
/// \param room  -1: enough for all routes
Dispatched outputs_of(const ExpertExchange& exchange, const at::Tensor& tokens, int64_t room,
                      int64_t alignment, bool padded) {
  const ExpertOptions& of = exchange.options();
  TORCH_CHECK(alignment > 0, "chorale: the alignment is ", alignment, ", expected at least 1");
  const int64_t experts = of.experts_per_rank;
  if (room < 0) {
    room = int64_t(padded ? exchange.most_rows_of_expert() : exchange.most_rows(uint32_t(alignment)));
  }
  std::vector<int64_t> rows = padded ? std::vector<int64_t>{experts, room} : std::vector<int64_t>{room};
  std::vector<int64_t> scales = rows;
  rows.push_back(int64_t(of.hidden));
  scales.push_back(of.scales);
  const auto numbers = tokens.options().dtype(at::kInt);
  return {at::empty(rows, tokens.options()), at::empty(scales, tokens.options().dtype(at::kFloat)),
          at::empty({experts}, numbers), at::empty({experts + 1}, numbers)};
}

/// Checks that a tensor has this type and shape, is contiguous and is beside `like`.
void check_tensor(const char* what, const at::Tensor& tensor, at::ScalarType type, at::IntArrayRef shape,
                  const at::Device& device) {
  TORCH_CHECK(tensor.scalar_type() == type && tensor.sizes() == shape, "chorale: ", what, " is ",
              tensor.scalar_type(), " ", tensor.sizes(), ", expected ", type, " ", shape);
  TORCH_CHECK(tensor.device() == device && tensor.is_contiguous(), "chorale: ", what,
              " has to be contiguous and on ", device, ", and it is on ", tensor.device());
}

#ifdef CHORALE_WITH_CUDA
void* stream_for(const at::Tensor& tensor) {
  const c10::impl::VirtualGuardImpl guard(tensor.device().type());
  return guard.getStream(tensor.device()).native_handle();
}
#endif

template <class Id>
void enqueue_dispatch(ExpertExchange& exchange, fused::Dispatch<Id> call, const at::Tensor& experts) {
  call.experts = experts.data_ptr<Id>();
#ifdef CHORALE_WITH_CUDA
  if (experts.is_cuda()) return dispatch_on_cuda(exchange, call, stream_for(experts));
#endif
  fused::dispatch(exchange, call);
}

Dispatched expert_dispatch(int64_t number, const at::Tensor& tokens, const at::Tensor& experts,
                           const OptionalTensor& weights, const OptionalTensor& scales, int64_t room,
                           int64_t alignment, bool padded, bool may_drop) {
  ExpertExchange& exchange = *experts_of(number).exchange;
  const ExpertOptions& of = exchange.options();
  TORCH_CHECK(tokens.dim() == 2, "chorale: tokens have ", tokens.dim(), " dimensions, expected 2");
  const int64_t n = tokens.size(0);
  const at::Device device = tokens.device();
  TORCH_CHECK(device.is_cpu() == (of.space == Space::host), "chorale: this expert exchange is for tensors ",
              of.space == Space::host ? "on the CPU" : "on CUDA", ", and the tokens are on ", device);
  TORCH_CHECK(tokens.nbytes() == size_t(n) * of.hidden * dtype_size(of.token) &&
                  tokens.size(1) == int64_t(of.hidden) && tokens.is_contiguous(),
              "chorale: tokens are ", tokens.scalar_type(), " ", tokens.sizes(), ", expected contiguous ",
              dtype_name(of.token), " [n, ", of.hidden, "]");
  check_tensor("experts", experts, experts.scalar_type() == at::kInt ? at::kInt : at::kLong,
               {n, int64_t(of.top_k)}, device);
  if (weights) check_tensor("weights", *weights, at::kFloat, {n, int64_t(of.top_k)}, device);
  TORCH_CHECK(scales.has_value() == (of.scales != 0), "chorale: this expert exchange takes ",
              of.scales == 0 ? "no scales" : "scales");
  if (scales) check_tensor("scales", *scales, at::kFloat, {n, int64_t(of.scales)}, device);
  TORCH_CHECK(n <= int64_t(of.max_tokens), "chorale: ", n, " tokens, but the exchange was made for at most ",
              of.max_tokens, ": make it with a larger max_tokens");
  Dispatched made = outputs_of(exchange, tokens, room, alignment, padded);
  const auto& [rows, row_scales, counts, begins] = made;
  const auto fill = [&](auto call) {
    call.tokens = tokens.data_ptr();
    call.scales = scales ? scales->data_ptr<float>() : nullptr;
    call.weights = weights ? weights->data_ptr<float>() : nullptr;
    call.n = uint32_t(n);
    call.rows = rows.data_ptr();
    call.row_scales = of.scales != 0 ? row_scales.data_ptr<float>() : nullptr;
    call.counts = counts.data_ptr<int32_t>();
    call.begins = begins.data_ptr<int32_t>();
    call.room = uint64_t(rows.size(padded ? 1 : 0));
    call.alignment = uint32_t(alignment);
    call.padded = padded;
    call.may_drop = may_drop;
    return call;
  };
  if (experts.scalar_type() == at::kInt) {
    enqueue_dispatch(exchange, fill(fused::Dispatch<int32_t>{}), experts);
  } else {
    enqueue_dispatch(exchange, fill(fused::Dispatch<int64_t>{}), experts);
  }
  return made;
}

Dispatched expert_dispatch_without_data(int64_t number, const at::Tensor& tokens, const at::Tensor&,
                                        const OptionalTensor&, const OptionalTensor&, int64_t room,
                                        int64_t alignment, bool padded, bool) {
  return outputs_of(*experts_of(number).exchange, tokens, room, alignment, padded);
}

at::Tensor combined_like(const ExpertExchange& exchange, const at::Tensor& rows, int64_t n) {
  return at::empty({n, int64_t(exchange.options().hidden)}, rows.options());
}

at::Tensor expert_combine(int64_t number, const at::Tensor& rows, int64_t n) {
  ExpertExchange& exchange = *experts_of(number).exchange;
  const ExpertOptions& of = exchange.options();
  TORCH_CHECK(rows.scalar_type() == scalar_type_of(of.result) && rows.is_contiguous() && rows.dim() >= 2 &&
                  rows.size(-1) == int64_t(of.hidden),
              "chorale: results are ", rows.scalar_type(), " ", rows.sizes(), ", expected contiguous ",
              scalar_type_of(of.result), " [..., ", of.hidden, "]");
  TORCH_CHECK(rows.device().is_cpu() == (of.space == Space::host), "chorale: the results are on ",
              rows.device(), ", and the tokens of this exchange are not");
  TORCH_CHECK(n >= 0 && n <= int64_t(of.max_tokens), "chorale: ", n, " tokens, expected 0 to ",
              of.max_tokens);
  at::Tensor made = combined_like(exchange, rows, n);
  const fused::Combine call{rows.data_ptr(), made.data_ptr(), uint32_t(n)};
#ifdef CHORALE_WITH_CUDA
  if (rows.is_cuda()) {
    combine_on_cuda(exchange, call, stream_for(rows));
    return made;
  }
#endif
  switch (of.result) {
    case DType::f32:
      fused::combine<float>(exchange, call);
      break;
    case DType::f16:
      fused::combine<f16>(exchange, call);
      break;
    default:
      fused::combine<bf16>(exchange, call);
  }
  return made;
}

at::Tensor expert_combine_without_data(int64_t number, const at::Tensor& rows, int64_t n) {
  return combined_like(*experts_of(number).exchange, rows, n);
}

}  // namespace
}  // namespace chorale::torch_fused

TORCH_LIBRARY(chorale, library) {
  library.def(
      "expert_dispatch(int exchange, Tensor tokens, Tensor experts, Tensor? weights, Tensor? scales, int "
      "room, "
      "int alignment, bool padded, bool may_drop) -> (Tensor, Tensor, Tensor, Tensor)");
  library.def("expert_combine(int exchange, Tensor rows, int n) -> Tensor");
}

#define CHORALE_OPERATORS(key) \
  TORCH_LIBRARY_IMPL(chorale, key, library) { \
    library.impl("expert_dispatch", chorale::torch_fused::expert_dispatch); \
    library.impl("expert_combine", chorale::torch_fused::expert_combine); \
  }
CHORALE_OPERATORS(CPU)
CHORALE_OPERATORS(CUDA)

TORCH_LIBRARY_IMPL(chorale, Meta, library) {
  library.impl("expert_dispatch", chorale::torch_fused::expert_dispatch_without_data);
  library.impl("expert_combine", chorale::torch_fused::expert_combine_without_data);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("make_experts", chorale::torch_fused::make_experts,
             pybind11::call_guard<pybind11::gil_scoped_release>());
  module.def("close_experts", chorale::torch_fused::close_experts,
             pybind11::call_guard<pybind11::gil_scoped_release>());
}
