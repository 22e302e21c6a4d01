// Runs plans whose peers reach into tensors, through staging memory that the peers have mapped.

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <chorale/collective.hpp>

#include "communicator.hpp"
#include "tensors.hpp"

namespace chorale::torch_backend {
namespace {

/// Limits the memory that peers reach, in each direction. Longer messages go piece by piece.
constexpr int64_t stage_bytes = int64_t{64} << 20;

}  // namespace

bool Communicator::must_stage(Place& place, const Plan& plan, const Arguments& call, const at::Tensor& in,
                              const at::Tensor& out) {
  if (!in.is_cuda()) return false;  // on the CPU the executor copies if it has to
  auto known = place.reached.find(&plan);
  if (known == place.reached.end()) {
    RankNeeds any;
    for (uint32_t rank = 0; rank < uint32_t(ranks()); ++rank) {
      const RankNeeds needs = needs_of(plan, rank, call.bytes, call.dtype);
      any.input_reached = any.input_reached || needs.input_reached;
      any.output_reached = any.output_reached || needs.output_reached;
    }
    known = place.reached.emplace(&plan, any).first;
  }
  const auto in_reach = [&place](const at::Tensor& tensor) {
    const char* const at = static_cast<const char*>(tensor.data_ptr());
    return std::any_of(place.allocated.begin(), place.allocated.end(), [&](const auto& memory) {
      return at >= memory.first && at + tensor.nbytes() <= memory.first + memory.second;
    });
  };
  return (known->second.input_reached && !in_reach(in)) || (known->second.output_reached && !in_reach(out));
}

void Communicator::execute(Place& place, const Plan& plan, const Arguments& call, const at::Tensor& in,
                           const at::Tensor& out, void* stream) {
  if (must_stage(place, plan, call, in, out)) {
    run_staged(place, plan, call, in, out, stream);
  } else {
    place.executor->execute(plan, call, stream);
  }
}

void Communicator::run_staged(Place& place, const Plan& plan, Arguments call, const at::Tensor& in,
                              const at::Tensor& out, void* stream) {
  if (!place.stage_in) {
    place.stage_in = static_cast<char*>(place.executor->allocate(uint64_t(stage_bytes)));
    place.stage_out = static_cast<char*>(place.executor->allocate(uint64_t(stage_bytes)));
  }
  const Parts parts = parts_of(plan.collective, ranks());
  // Pieces must have whole words. If the plan reduces, words are no longer than elements. Otherwise words are
  // as long as the sizes and addresses of the parts allow.
  const int64_t unit =
      collective_reduces(plan.collective)
          ? int64_t(in.element_size())
          : int64_t(in.nbytes()) / parts.in | int64_t(reinterpret_cast<uintptr_t>(in.data_ptr()) |
                                                      reinterpret_cast<uintptr_t>(out.data_ptr()));
  const at::Tensor from = as_words(in, parts.in, unit), to = as_words(out, parts.out, unit);
  const int64_t words = from.size(1), word = int64_t(from.element_size());
  const int64_t most = stage_bytes / std::max(parts.in, parts.out) / 128 * 128 / word;
  TORCH_CHECK(is_standard(plan.collective) || (words <= most && in.nbytes() == out.nbytes()),
              "chorale: ", plan.name, " of the collective '", plan.collective, "' makes ", out.nbytes(),
              " bytes of ", in.nbytes(),
              ", and peers reach into them: take tensors that chorale_torch.empty() has made");
  for (int64_t begin = 0; begin < words; begin += most) {
    const int64_t n = std::min(most, words - begin);
    const at::Tensor staged_in = at::from_blob(place.stage_in, {parts.in, n}, from.options());
    const at::Tensor staged_out = at::from_blob(place.stage_out, {parts.out, n}, to.options());
    staged_in.copy_(from.narrow(1, begin, n));
    call.in = place.stage_in;
    call.out = place.stage_out;
    call.bytes =
        uint64_t((collective_info(plan.collective).counts_output() ? parts.out : parts.in) * n * word);
    place.executor->execute(plan, call, stream);
    to.narrow(1, begin, n).copy_(staged_out);
  }
}

}  // namespace chorale::torch_backend
