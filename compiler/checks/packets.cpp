// This check requires some operation of the plan to write every packet that an operation waits for. If none
// does, the wait never ends. The check does not look at order.
//
// A "test" collective may be a single operation, as in MSCCL++'s unit tests, which read packets that nobody
// writes. The check skips it and leaves it to the proof of deadlock, which the user can leave out.
//
// This costs O(n log n) for n operands that are packets.

#include <algorithm>
#include <iterator>
#include <utility>

#include "chorale/checks.hpp"
#include "chorale/collective.hpp"
#include "compiler/plan/report.hpp"
#include "compiler/plan/resolve.hpp"
#include "compiler/plan/roles.hpp"

namespace chorale {
namespace {

/// Holds the chunks of one rank's scratch that are written as packets.
class Written {
 public:
  void add(const Operand& operand) { ranges_.emplace_back(operand.index, operand.index + operand.size); }

  /// Sorts the ranges and joins those that touch.
  void finish() {
    std::sort(ranges_.begin(), ranges_.end());
    size_t kept = 0;
    for (size_t next = 1; next < ranges_.size(); ++next) {
      if (ranges_[next].first <= ranges_[kept].second)
        ranges_[kept].second = std::max(ranges_[kept].second, ranges_[next].second);
      else
        ranges_[++kept] = ranges_[next];
    }
    if (!ranges_.empty()) ranges_.resize(kept + 1);
  }

  /// Returns the first of these chunks that nobody writes, or `end` if all are written.
  uint64_t missing(uint64_t begin, uint64_t end) const {
    auto after = std::upper_bound(ranges_.begin(), ranges_.end(), std::pair(begin, UINT64_MAX));
    if (after == ranges_.begin()) return begin;
    return std::clamp(std::prev(after)->second, begin, end);
  }

 private:
  std::vector<std::pair<uint64_t, uint64_t>> ranges_;
};

/// Returns the writes by rank; nothing if the plan has no packets.
std::vector<Written> list_writes(const Plan& plan) {
  std::vector<Written> written(plan.gpus.size());
  bool any = false;
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace) {
    if (!shape(op.code).has_any(packet_roles)) return;
    any = true;
    for_each_operand(block, op, [&](const Field& field, const Operand& operand) {
      if (!is_packet(field.role) || !is_write(field.role)) return;
      if (is_remote(field.role)) {
        written[remote_buffer(gpu, block, op.via, operand.ref)->rank].add(operand);
      } else if (is_switched(field.role)) {
        for (const uint32_t rank : *switch_group(gpu, block, operand.ref).ranks) written[rank].add(operand);
      } else {
        written[gpu.id].add(operand);
      }
    });
  });
  if (!any) return {};
  for (Written& one : written) one.finish();
  return written;
}

}  // namespace

void pass::packets(const Plan& plan, Diagnostics& out) {
  if (collective_info(plan.collective).holds == CollectiveInfo::Holds::nothing) return;
  Report report("packets", out);
  const std::vector<Written> written = list_writes(plan);
  if (written.empty()) return;
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    if (!shape(op.code).has_any(packet_roles)) return;
    for_each_operand(block, op, [&](const Field& field, const Operand& operand) {
      if (!is_packet(field.role) || is_write(field.role)) return;
      const uint64_t end = operand.index + operand.size;
      const uint64_t missing = written[gpu.id].missing(operand.index, end);
      if (missing == end) return;
      report.add(at,
                 "this wait for packets never ends: " + std::string(field.name) + " is scratch[" +
                     number(operand.index) + ":" + number(end) + "] of " + rank_name(gpu.id) +
                     ", but no operation writes packets to chunk " + number(missing),
                 {}, operand_path(block, op, operand));
    });
  });
}

}  // namespace chorale
