/// \file
/// LaunchSpans holds the spans of one launch, ordered by thread block.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "chorale/diagnostic.hpp"
#include "chorale/plan.hpp"
#include "chorale/profile.hpp"
#include "chorale/trace_span.hpp"

namespace chorale::profile_of {

/// Identifies a span by its thread block and its index among the block's spans.
struct SpanPlace {
  static constexpr uint32_t none = ~uint32_t{0};
  uint32_t rank = 0, block = 0, at = none;
};

class LaunchSpans {
 public:
  /// Selects the spans of the last launch of a message of `bytes` bytes.
  LaunchSpans(const Plan&, std::span<const TraceSpan>, uint64_t bytes);

  uint64_t launch() const { return launch_; }  ///< the number of the launch; 0: there is none

  /// Returns the spans of a thread block in order of time.
  const std::vector<const TraceSpan*>& of(uint32_t rank, uint32_t block) const {
    return blocks_[rank][block].spans;
  }
  const TraceSpan& at(const SpanPlace& place) const { return *of(place.rank, place.block)[place.at]; }

  /// Returns the span in which an operation was done. An operation that a GPU does together with an earlier
  /// one has no separate span. `at` is none if the block has no span up to this operation.
  SpanPlace holder(const OpPlace&) const;

  /// Calls visit(OpPlace) for the operations that were done in a span: the operation that the span names, and
  /// later ones of the same kind that have no separate span.
  template <class Visit>
  void each_op(const TraceSpan& span, Visit&& visit) const {
    const std::vector<Op>& ops = plan_.gpus[span.rank].threadblocks[span.block].ops;
    const std::vector<uint32_t>& holders = blocks_[span.rank][span.block].holders;
    for (uint32_t op = span.op; op < ops.size() && holders[op] == holders[span.op]; ++op) {
      if (ops[op].code == ops[span.op].code) visit(OpPlace{span.rank, span.block, op});
    }
  }

  /// Returns the time at which the first span of a rank began.
  uint64_t begin_of(uint32_t rank) const { return begins_[rank]; }
  static constexpr uint64_t never = ~uint64_t{0};  ///< the rank has no span

  /// Calls visit(SpanPlace, const TraceSpan&) for all spans.
  template <class Visit>
  void each(Visit&& visit) const {
    for (uint32_t rank = 0; rank < blocks_.size(); ++rank) {
      for (uint32_t block = 0; block < blocks_[rank].size(); ++block) {
        const std::vector<const TraceSpan*>& spans = blocks_[rank][block].spans;
        for (uint32_t at = 0; at < spans.size(); ++at) visit(SpanPlace{rank, block, at}, *spans[at]);
      }
    }
  }

 private:
  struct Block {
    std::vector<const TraceSpan*> spans;
    std::vector<uint32_t> holders;  ///< by operation: the index in `spans`
  };

  const Plan& plan_;
  uint64_t launch_ = 0;
  std::vector<std::vector<Block>> blocks_;  // by rank and block
  std::vector<uint64_t> begins_;            // by rank
};

struct WholeLaunch {
  SpanPlace last;  ///< the span that ended last; with Clocks::per_rank, the last span of the slowest rank
  uint64_t start_ns = 0, ns = 0;
};

/// Finds the beginning and the end of a launch.
/// \param spans  the spans of the launch, at least one
WholeLaunch whole_launch(const LaunchSpans& spans, uint32_t ranks, Clocks);

inline bool has_any(const OpInfo& op, std::initializer_list<Role> roles) {
  return std::any_of(roles.begin(), roles.end(), [&](Role role) { return op.has(role); });
}

inline bool moves_data(const OpInfo& op) {
  return std::any_of(op.fields.begin(), op.fields.end(),
                     [](const Field& field) { return is_operand(field.role); });
}

/// Returns whether an operation waits and moves nothing.
inline bool only_waits(const OpInfo& op) {
  return !moves_data(op) &&
         has_any(op, {Role::Await, Role::AwaitRelaxed, Role::Acquire, Role::Arrive, Role::Drain});
}

}  // namespace chorale::profile_of
