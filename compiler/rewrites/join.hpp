#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compiler/targets/bounds.hpp"
#include "fuse_rules.hpp"
#include "usage.hpp"

namespace chorale {

/// Joins operations of one thread block. The block's lists grow by the lists of the joined operations.
class Joiner {
 public:
  /// Creates a Joiner. It computes `readers` of the plan and `waiters` of the rank when it first needs them.
  Joiner(const Plan&, const Gpu&, ThreadBlock&, const OpBounds&, std::optional<Readers>& readers,
         std::optional<Waiters>& waiters);

  /// Turns `left` into the operation that means both and returns true, or returns false if there is none.
  bool join(Op& left, const Op& right);

  /// Returns whether the operation that was joined last has only the destinations of the right one.
  bool replaced_destinations() const { return replaced_destinations_; }

 private:
  /// Holds what the right operation adds to the lists of the left one.
  struct Added {
    std::span<const Operand> sources, dests;
    bool ids = false;             ///< its ids
    bool instead_of_own = false;  ///< its destinations replace those of the left one
  };

  bool codecs_unite(const Rule&, const Op& left, const Op& right) const;
  bool matches(const Rule&, const Op& left, const Op& right, Added&);
  bool ids_unite(const Op& left, const Op& right, bool& add);
  bool reads_again(const Op& right);
  bool unused(const Op& left, const Op& right);
  bool one_buffer(const Op& left, const Op& right) const;
  bool fits(const Rule&, const Op& left, const Op& right, const Added&) const;
  bool keeps_order(Join, const Op& left, const Op& right);
  void replace(const Rule&, Op& left, const Op& right, const Added&);
  void extend_operands(Op& left, const Added&);
  void extend_ids(Op& left, const Op& right);

  std::span<const Operand> sources(const Op&) const;
  std::span<const Operand> dests(const Op&) const;

  const Plan& plan_;
  const Gpu& gpu_;
  ThreadBlock& block_;
  const OpBounds& bounds_;
  std::optional<Readers>& readers_;
  std::optional<Waiters>& waiters_;
  /// Returns where the operands of an operation are in the block's pool. No two operations share operands.
  static std::array<uint32_t, 2> operands_of(const Op& op) {
    return {op.first_operand, op.first_operand + op.sources + op.destinations};
  }
  static constexpr std::array<uint32_t, 2> nothing{UINT32_MAX, UINT32_MAX};

  std::vector<Access> first_, second_;        // of the left and the right operation
  std::array<uint32_t, 2> listed_ = nothing;  // the operands whose accesses are in first_
  uint32_t alone_ = UINT32_MAX;  // first id of a joined operation on whose ids no other block waits
  bool replaced_destinations_ = false;
  std::vector<Operand> room_;  // room for the lists of an operation
};

}  // namespace chorale
