#pragma once
/// \file
/// Records one execution of a plan: which accesses of the same memory need an order, and which operations
/// order them.
///
/// The order is the prover's own record of an execution (compiler/proof/explain/history.hpp). A separate
/// graph would be no independent witness, because it would be made from the same steps of the same symbolic
/// executor. None is needed, because a trace judges no mutant. The proofs do, and then adversarial schedules
/// of the executor, which share no code with the proofs. A trace only says why a mutant that passed both is
/// right. It adds the accesses to the history, and numbers them so that those of two plans can be compared.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/proof/explain/paths.hpp"

namespace chorale::mutation {

/// Identifies an access of a block, its proxy, or the application of a rank. It is the same in two plans
/// whose blocks touch the same memory in the same order.
struct AccessId {
  enum class Who : uint8_t { block, proxy_reads, proxy_writes, application };
  Who who = Who::block;
  uint32_t rank = 0, block = 0, launch = 0;
  uint32_t nth = 0;  ///< index of the block's memory operation; application: 0 reads, 1 overwrites
  auto operator<=>(const AccessId&) const = default;
};

/// Holds two accesses of the same bytes, at least one of which writes. The first came before the second.
struct Pair {
  AccessId first, second;
  bool visible = true;  ///< the first is a write: the second must see it, not only come later
  auto operator<=>(const Pair&) const = default;
};

class Trace {
 public:
  explicit Trace(const Plan&);
  ~Trace();

  /// Returns true if all launches ended.
  bool ended() const { return ended_; }

  /// Returns, for each block, a text of its operations and of the memory that they touch, so that two
  /// executions can be compared.
  const std::vector<std::string>& streams() const;

  /// Returns the pairs of accesses that need an order, each once.
  const std::set<Pair>& pairs() const;

  /// Returns the pairs that have an operation between them in the order, or as one of the two. The nearest
  /// come first.
  std::vector<Pair> pairs_through(const OpPlace& at) const;

  /// Returns the place of an access.
  OpPlace place_of(const AccessId& id) const;

  /// Returns the operations that order the second access after the first; none if there is no such path.
  /// Consecutive calls for pairs with the same second access are the cheapest.
  std::optional<std::vector<OpPlace>> path(const Pair&) const;

 private:
  class Accesses;

  std::unique_ptr<proof::Memory> memory_;
  std::unique_ptr<proof::SymbolicExecutor> executor_;
  std::unique_ptr<Accesses> accesses_;
  bool ended_ = false;
  mutable std::optional<proof::Past> past_;  // the past of the last path
  mutable std::pair<uint32_t, bool> past_node_;
};

}  // namespace chorale::mutation
