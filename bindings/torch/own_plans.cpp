// Adds the calls that torch.distributed lacks: running a user's plan, and allocating memory that peers reach.

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <chorale/collective.hpp>

#include "communicator.hpp"
#include "errors.hpp"
#include "tensors.hpp"
#include "types.hpp"

namespace chorale::torch_backend {

void Communicator::run_plan(const SharedPlan& plan, const at::Tensor& in, const at::Tensor& out,
                            std::optional<ReduceOp> op, void* stream) {
  check_alike(plan->name, in, out);
  check_ranks(*plan);
  // A custom plan may reduce, so only standard collectives are known to move elements without reducing.
  const bool moves = is_standard(plan->collective) && !collective_reduces(plan->collective);
  TORCH_CHECK(!op || !moves, "chorale: ", plan->name, " reduces nothing, and has an operator");
  if (!op && !moves) {
    try {
      check_operator_of_plan(*plan, name_of(in));
    } catch (const NoSuchReduction& none) {
      TORCH_CHECK(false, "chorale: ", none.what());
    }
  }
  Arguments call{.in = in.data_ptr(),
                 .out = out.data_ptr(),
                 .bytes = collective_info(plan->collective).counts_output() ? out.nbytes() : in.nbytes(),
                 .dtype = moves ? DType::u8 : dtype_of(in),
                 .op = op};
  const MessageSizes sizes = message_sizes(*plan, call.bytes, call.dtype);
  TORCH_CHECK(sizes.input == in.nbytes() && sizes.output == out.nbytes(), "chorale: ", plan->name, " turns ",
              sizes.input, " bytes into ", sizes.output, ", and the tensors have ", in.nbytes(), " and ",
              out.nbytes());
  if (call.bytes == 0) return;
  const std::lock_guard<std::mutex> one_at_a_time(mutex_);
  with_torch_errors([&] {
    held_.emplace(plan.get(), plan);
    execute(*place_for(in.device()).executor, *plan, call, stream);
  });
}

const Communicator::Preferred* Communicator::preferred(const std::string& collective, uint64_t bytes) const {
  const auto last = std::find_if(preferred_.rbegin(), preferred_.rend(), [&](const Preferred& one) {
    return one.plan->collective == collective && bytes >= one.least && bytes <= one.most;
  });
  return last == preferred_.rend() ? nullptr : &*last;
}

void Communicator::use(const SharedPlan& plan, uint64_t least, uint64_t most) {
  check_ranks(*plan);
  const CollectiveInfo& collective = collective_info(plan->collective);
  TORCH_CHECK(collective.is_standard() && !collective.leaves_sender_open(), "chorale: ", plan->name,
              " computes the collective '", plan->collective,
              "', which torch.distributed does not call: run it with run()");
  TORCH_CHECK(!collective.has_root() || plan->extension.root == 0, "chorale: ", plan->name, " has root ",
              plan->extension.root, ", and the plan of every ", plan->collective, " has root 0");
  const std::lock_guard<std::mutex> one_at_a_time(mutex_);
  preferred_.push_back({plan, least, most});
}

std::string Communicator::chosen(const std::string& collective, uint64_t bytes, DType dtype,
                                 const at::Tensor& input) {
  const std::lock_guard<std::mutex> one_at_a_time(mutex_);
  if (const Preferred* const mine = preferred(collective, bytes))
    return mine->plan->name + ", as set by use()";
  const Place& place = place_for(input.device());
  const Arguments call{.in = input.data_ptr(), .out = input.data_ptr(), .bytes = bytes};
  return place.plans.choose(collective, place.bytes_at_once(call, input.nbytes(), 0), dtype).words();
}

at::Tensor Communicator::empty(at::IntArrayRef shape, at::ScalarType type, const at::Device& device) {
  int64_t elements = 1;
  for (const int64_t size : shape) {
    TORCH_CHECK(size >= 0, "chorale: a tensor of shape ", shape);
    elements *= size;
  }
  const uint64_t bytes = uint64_t(elements) * c10::elementSize(type);
  const auto options = at::TensorOptions().dtype(type).device(device);
  if (bytes == 0) return at::empty(shape, options);
  const std::lock_guard<std::mutex> one_at_a_time(mutex_);
  at::Tensor tensor;
  with_torch_errors([&] {
    Place& place = place_for(device);
    void* const memory = place.executor->allocate(bytes);
    place.shared.emplace_back(static_cast<const char*>(memory), bytes);
    // The tensor keeps the communicator, because the executor refers to its world.
    const auto keep = [self = shared_from_this(), executor = place.executor](void*) {};
    tensor = at::from_blob(memory, shape, keep, options);
  });
  return tensor;
}

void Communicator::check_ranks(const Plan& plan) const {
  TORCH_CHECK(plan.ranks() == uint32_t(ranks()), "chorale: ", plan.name, " is for ", plan.ranks(),
              " ranks, and the process group has ", ranks());
}

}  // namespace chorale::torch_backend
