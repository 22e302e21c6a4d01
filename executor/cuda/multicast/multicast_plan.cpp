#include "multicast_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "executor/system/round_up.hpp"

namespace chorale::cuda {
namespace {

bool is_float(DType dtype) {
  switch (dtype) {
    case DType::i32:
    case DType::u32:
    case DType::i64:
    case DType::u64:
    case DType::u8:
    case DType::i8:
      return false;
    default:
      return true;
  }
}

/// Returns true if the plan's certificate promises the exact bits of sums.
bool promises_rounding(const Plan& plan) {
  if (plan.extension.verified.empty()) return false;
  const auto says = nlohmann::json::parse(plan.extension.verified, nullptr, false);
  if (!says.is_object()) return false;
  const auto same = says.find("same_rounding"), order = says.find("reduction_order");
  if (same != says.end() && *same == true) return true;
  return order != says.end() && order->is_string() && !order->get_ref<const std::string&>().empty();
}

std::string combinations() {
  std::string text;
  const char* last = "";
#define CHORALE_MULTIMEM(dtype, element, op, shape, instruction) \
  if (std::string_view(last) != #dtype) text += std::string(*last ? "; " : "") + #dtype + ":"; \
  text += " " #op; \
  last = #dtype;
#include "chorale/device/multimem.def"
  return text;
}

}  // namespace

SwitchUse::SwitchUse(const Plan& plan) {
  for (const Gpu& gpu : plan.gpus) {
    for (uint32_t id = 0; id < gpu.channel_count(ChannelType::switched); ++id) {
      const SwitchGroup group = gpu.switch_group(id);
      std::vector<uint32_t> ranks = *group.ranks;
      std::sort(ranks.begin(), ranks.end());
      if (ranks.size() < 2) continue;
      (group.buffer == BufferKind::scratch ? scratch : passed) = true;
      if (std::find(groups.begin(), groups.end(), ranks) == groups.end()) groups.push_back(ranks);
    }
  }
  std::sort(groups.begin(), groups.end());
}

SwitchRoom::SwitchRoom(const Plan& plan, const Layout& layout, const SwitchUse& use) {
  constexpr uint64_t line = 128;
  if (use.passed) bytes = layout.sizes.input + layout.sizes.output;
  scratch_at = bytes = round_up(bytes, line);
  if (!use.scratch) return;
  uint64_t most = 0;
  for (const ScratchUse& of_rank : scratch_use(plan))
    most = std::max(most, lowering::scratch_bytes(of_rank, layout).plain());
  bytes += most;
}

bool multicast_combines(DType dtype, ReduceOp op) {
  if (op == ReduceOp::avg) op = ReduceOp::sum;
#define CHORALE_MULTIMEM(type, element, operation, shape, instruction) \
  if (dtype == DType::type && op == ReduceOp::operation) return true;
#include "chorale/device/multimem.def"
  return false;
}

std::string refuse_multicast(const Plan& plan, const lowering::BoundImage& image, DType dtype) {
  for (const image::Record& record : image.records) {
    if (!info(record.code).has(Role::SwitchRead)) continue;
    const ReduceOp op = record.reduce_op;
    if (!multicast_combines(dtype, op)) {
      return fmt::format(
          "plan '{}' combines {} by {} on a switch channel, which multicast does not offer (it has {}): take "
          "switch_channels = peer",
          plan.name, dtype_name(dtype), reduce_op_name(op), combinations());
    }
    const bool adds = op == ReduceOp::sum || op == ReduceOp::avg;
    if (adds && is_float(dtype) && promises_rounding(plan)) {
      return fmt::format(
          "the certificate of plan '{}' says in which order sums are rounded, and with multicast a switch "
          "adds {} in an order of its own: take switch_channels = peer, or the plan without its certificate",
          plan.name, dtype_name(dtype));
    }
  }
  return {};
}

}  // namespace chorale::cuda
