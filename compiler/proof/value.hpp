#pragma once
/// \file
/// What a cell holds, as a sum of parts of inputs.

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "chorale/types.hpp"

namespace chorale::proof {

/// The part of a rank's input that begins at an atom; or what a cell held before the launch.
struct Origin {
  static constexpr uint32_t before = ~uint32_t{0};
  uint32_t rank = before;
  uint64_t at = 0;  ///< atom of the input; before: the cell

  auto operator<=>(const Origin&) const = default;
};

/// A sum of pseudo-random numbers modulo 2^127 - 1, one for each origin. Two different sums of fewer than
/// 2^64 origins have the same with a probability of less than 2^-60.
using Sum = unsigned __int128;
Sum sum_of(const Origin&);
Sum plus(Sum, Sum);

/// Values are positions in here; equal sums are equal values, whatever the order of their addends.
class Values {
 public:
  static constexpr uint32_t none = ~uint32_t{0};

  uint32_t origin(const Origin&);
  /// Two values combined by an operator. Of several operators nothing is known: then the sum is that of no
  /// others.
  uint32_t combine(uint32_t left, uint32_t right, ReduceOp);

  /// An operation's result is rounded when it is stored; within, a sum of several is not.
  void round(uint32_t value);
  /// Equal for values that were added up in the same order and rounded at the same places.
  uint64_t tree(uint32_t value) const { return nodes_[value].tree; }
  /// The same, but whatever part of a rank's input its addend is.
  uint64_t order(uint32_t value) const { return nodes_[value].order; }
  /// That order in words, see ProofFacts::order; equal words are equal orders.
  std::string order_words(uint32_t value) const;

  Sum sum(uint32_t value) const { return nodes_[value].sum; }
  /// How often each origin is in a value; 2^64 - 1 is so often or more.
  std::map<Origin, uint64_t> origins(uint32_t value) const;
  /// The operator that it was made with last; none if it was not combined.
  std::optional<ReduceOp> op(uint32_t value) const {
    return nodes_[value].left == none ? std::nullopt : std::optional(nodes_[value].op);
  }
  /// Whether it was made with several operators.
  bool mixed(uint32_t value) const { return nodes_[value].mixed; }
  bool combined(uint32_t value) const { return nodes_[value].left != none; }

 private:
  static uint64_t scrambled(uint64_t);
  std::vector<uint32_t> addends(uint32_t value) const;

  struct Node {
    Sum sum;
    uint64_t tree = 0, order = 0;
    uint32_t left = none, right = none;
    uint32_t lowest = 0;  // rank of those whose parts are in it
    Origin origin;        // of a node without parts
    ReduceOp op = ReduceOp::sum;
    bool mixed = false, rounded = false;
  };
  std::vector<Node> nodes_;
};

}  // namespace chorale::proof
