#include <chorale/launch.cuh>

#include "fused_kernels.hpp"

namespace chorale::torch_fused {

void dispatch_on_cuda(fused::ExpertExchange& exchange, const fused::Dispatch<int32_t>& call, void* stream) {
  fused::dispatch(exchange, call, {stream});
}
void dispatch_on_cuda(fused::ExpertExchange& exchange, const fused::Dispatch<int64_t>& call, void* stream) {
  fused::dispatch(exchange, call, {stream});
}

void combine_on_cuda(fused::ExpertExchange& exchange, const fused::Combine& call, void* stream) {
  switch (exchange.options().result) {
    case DType::f32:
      return fused::combine<float>(exchange, call, {stream});
    case DType::f16:
      return fused::combine<f16>(exchange, call, {stream});
    default:
      return fused::combine<bf16>(exchange, call, {stream});
  }
}

}  // namespace chorale::torch_fused
