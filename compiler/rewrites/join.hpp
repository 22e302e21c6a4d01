#pragma once
/// \file
/// One operation for two that are neighbours in a thread block.

#include <optional>

#include "../targets/bounds.hpp"
#include "fuse_rules.hpp"
#include "usage.hpp"

namespace chorale {

/// Joins operations of one thread block, whose lists grow by those of the joined ones.
class Joiner {
 public:
  /// `readers` of the plan and `waiters` of the rank are made when they are first asked.
  Joiner(const Plan&, const Gpu&, ThreadBlock&, const OpBounds&, std::optional<Readers>& readers,
         std::optional<Waiters>& waiters);

  /// Makes `left` the operation that means both, if there is one.
  bool join(Op& left, const Op& right);

 private:
  /// The lists of a joined operation.
  struct Parts {
    std::vector<Operand> sources, dests;
    std::vector<uint32_t> ids;
  };

  bool matches(const Rule&, const Op& left, const Op& right, Parts&);
  bool unite_ids(const Op& left, const Op& right, Parts&);
  bool reads_again(const Op& right);
  bool unused(const Op& left, const Op& right);
  bool one_buffer(const Op& left, const Op& right) const;
  bool fits(const Rule&, ChannelType via, const Parts&) const;
  bool keeps_order(Join, const Op& left, const Op& right);
  void replace(const Rule&, Op& left, const Op& right, const Parts&);

  std::span<const Operand> sources(const Op&) const;
  std::span<const Operand> dests(const Op&) const;

  const Plan& plan_;
  const Gpu& gpu_;
  ThreadBlock& block_;
  const OpBounds& bounds_;
  std::optional<Readers>& readers_;
  std::optional<Waiters>& waiters_;
  std::vector<Access> first_, second_;
};

}  // namespace chorale
