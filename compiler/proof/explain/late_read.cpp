#include "late_read.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/plan/resolve.hpp"
#include "paths.hpp"

namespace chorale::proof {
namespace {

using Interval = std::pair<uint64_t, uint64_t>;

/// Finds the operations that use the memory of a race.
class Users {
 public:
  /// \param write, read  nodes; the memory is what the first writes and the second reads of the finding's
  ///   buffer
  Users(const History& history, const ProofEvent& buffer, uint32_t write, uint32_t read)
      : history_(history), buffer_(buffer) {
    for (const Interval& written : ranges_of(write, true)) {
      for (const Interval& seen : ranges_of(read, false)) {
        const Interval both{std::max(written.first, seen.first), std::min(written.second, seen.second)};
        if (both.first < both.second) place_.push_back(both);
      }
    }
  }

  bool writes(uint32_t node) { return use_of(node).writes; }
  bool reads(uint32_t node) { return use_of(node).reads; }

 private:
  struct Use {
    bool reads = false, writes = false;
  };

  Use use_of(uint32_t at) {
    const Node& node = history_.nodes()[at];
    if (node.kind != Node::Kind::move && node.kind != Node::Kind::proxy_reads &&
        node.kind != Node::Kind::proxy_writes)
      return {};
    auto [known, added] = uses_.try_emplace({node.chain, node.op});
    if (added) known->second = {overlaps(ranges_of(at, false)), overlaps(ranges_of(at, true))};
    return known->second;
  }

  bool overlaps(const std::vector<Interval>& ranges) const {
    for (const Interval& range : ranges) {
      for (const Interval& part : place_) {
        if (range.first < part.second && part.first < range.second) return true;
      }
    }
    return false;
  }

  /// Returns the chunks of the buffer that a move's operation writes, or reads.
  std::vector<Interval> ranges_of(uint32_t at, bool written) const {
    const Node& node = history_.nodes()[at];
    const Plan& plan = history_.executor().plan();
    const Chain& chain = history_.executor().chains()[node.chain];
    const Gpu& gpu = plan.gpus[chain.rank];
    const ThreadBlock& block = gpu.threadblocks[chain.block];
    std::vector<Interval> ranges;
    for_each_place(
        plan, gpu, block, block.ops[node.op],
        [&](const Field& field, const Operand& operand, uint32_t rank, BufferKind buffer) {
          if (rank == buffer_.buffer_rank && buffer == buffer_.buffer && is_write(field.role) == written)
            ranges.emplace_back(operand.index, operand.index + operand.size);
        });
    return ranges;
  }

  const History& history_;
  const ProofEvent& buffer_;
  std::vector<Interval> place_;
  std::map<std::pair<uint32_t, uint32_t>, Use> uses_;  // by chain and operation
};

bool same_operation(const Node& one, const Node& other) {
  return one.chain == other.chain && one.op == other.op && one.launch == other.launch;
}

}  // namespace

bool reads_what_was_before(const History& history, const Finding& finding) {
  const ProofEvent &write = finding.events[0], &read = finding.events[1];
  const bool blocks = write.who != ProofEvent::Who::application && read.who != ProofEvent::Who::application;
  if (!blocks || write.launch != read.launch || !write.writes || read.writes) return false;
  const uint32_t written = history.find(write), seen = history.find(read);
  if (written == History::none || seen == History::none) return false;

  Users users(history, write, written, seen);
  const Past of_write(history, written, false), of_read(history, seen, true);
  const std::vector<Node>& nodes = history.nodes();
  const auto is_other = [&](uint32_t at) {
    return !same_operation(nodes[at], nodes[written]) && !same_operation(nodes[at], nodes[seen]);
  };
  std::optional<uint32_t> before;  // the last write that comes before both
  for (uint32_t at = 0; at < nodes.size(); ++at) {
    if (of_write.has(at) && of_read.has(at) && is_other(at) && users.writes(at)) before = at;
  }
  if (!before) return false;
  bool has_other_reader = false;
  for (uint32_t at = *before + 1; at < nodes.size(); ++at) {
    if (!is_other(at) || !users.reads(at)) continue;
    if (of_write.has(at)) return false;  // it reads the old data
    has_other_reader = has_other_reader || Past(history, at, true).has(written);
  }
  return has_other_reader;
}

}  // namespace chorale::proof
