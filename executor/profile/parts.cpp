#include "parts.hpp"

#include "op_kind.hpp"

namespace chorale::profile_of {
namespace {

using Times = std::vector<std::optional<uint64_t>>;  // by operation

constexpr uint32_t none = ~uint32_t{0};

Times times_of(size_t ops, std::span<const TraceSpan* const> spans) {
  Times times(ops);
  for (const TraceSpan* span : spans)
    times[span->op] = times[span->op].value_or(0) + span->end_ns - span->begin_ns;
  return times;
}

bool packs_here(const OpInfo& op) {
  return op.has(Role::PacketWrite) && !op.has(Role::PacketRead) && !op.has(Role::RemotePacketWrite);
}

/// Returns the next operation after `op` that is not synchronisation, if it adds packets; else none.
uint32_t sum_behind(std::span<const Op> ops, uint32_t op) {
  uint32_t next = op + 1;
  while (next < ops.size() && ops[next].code == Opcode::nop) ++next;
  if (next == ops.size()) return none;
  const OpInfo& of = info(ops[next].code);
  return of.has(Role::Reduce) && of.has(Role::PacketRead) ? next : none;
}

/// Returns whether a span of `before` may include the later operation `op`.
bool holds(const Op& before, const Op& op) {
  return info(op.code).has(Role::Loop) || before.code == op.code ||
         (moves_data(info(before.code)) && moves_data(info(op.code)));
}

/// Finds, for each operation, the operation to which its times count; none: there are no times.
class Owners {
 public:
  Owners(std::span<const Op> ops, const Times& measured, const Times& predicted)
      : ops_(ops), measured_(measured), predicted_(predicted), owners_(ops.size(), none) {
    add_predicted();
    add_synchronisation();
  }

  uint32_t of(uint32_t op) const { return owners_[op]; }

 private:
  void add_predicted() {
    uint32_t before = none;
    for (uint32_t op = 0; op < ops_.size(); ++op) {
      if (measured_[op]) owners_[op] = before = op;
      if (measured_[op] || !predicted_[op]) continue;
      const uint32_t behind = packs_here(info(ops_[op].code)) ? sum_behind(ops_, op) : none;
      if (behind != none && measured_[behind]) {
        owners_[op] = behind;
      } else {
        owners_[op] = before != none && holds(ops_[before], ops_[op]) ? before : op;
      }
    }
  }

  /// Counts measured nops as part of the operation after them, as the prediction does.
  void add_synchronisation() {
    std::vector<bool> has_prediction(ops_.size());
    for (uint32_t op = 0; op < ops_.size(); ++op)
      if (predicted_[op]) has_prediction[owners_[op]] = true;
    uint32_t next = none;
    for (uint32_t op = uint32_t(ops_.size()); op-- > 0;) {
      if (owners_[op] != op) continue;
      const bool predicted = has_prediction[op];
      if (ops_[op].code == Opcode::nop && !predicted) {
        if (next != none) owners_[op] = next;
      } else {
        next = measured_[op] && predicted ? op : none;
      }
    }
  }

  std::span<const Op> ops_;
  const Times &measured_, &predicted_;
  std::vector<uint32_t> owners_;
};

void add(std::optional<uint64_t>& sum, const std::optional<uint64_t>& ns) {
  if (ns) sum = sum.value_or(0) + *ns;
}

}  // namespace

std::vector<Part> parts_of(std::span<const Op> ops, std::span<const TraceSpan* const> measured,
                           std::span<const TraceSpan* const> predicted) {
  const Times measured_ns = times_of(ops.size(), measured), predicted_ns = times_of(ops.size(), predicted);
  const Owners owners(ops, measured_ns, predicted_ns);
  std::vector<Part> parts;
  std::vector<uint32_t> at(ops.size(), none);
  for (uint32_t op = 0; op < ops.size(); ++op) {
    if (owners.of(op) != op) continue;
    at[op] = uint32_t(parts.size());
    parts.push_back({.op = op});
  }
  for (uint32_t op = 0; op < ops.size(); ++op) {
    const uint32_t owner = owners.of(op);
    if (owner == none) continue;
    Part& part = parts[at[owner]];
    if (owner != op) part.with.push_back(op);
    add(part.measured_ns, measured_ns[op]);
    add(part.predicted_ns, predicted_ns[op]);
  }
  return parts;
}

}  // namespace chorale::profile_of
