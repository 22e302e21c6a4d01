#pragma once
/// \file
/// The content of a cell is described as a sum of parts of inputs.

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chorale/quantised.hpp"
#include "chorale/types.hpp"

namespace chorale::proof {

/// Names the part of a rank's input that begins at an atom, or the content of a cell before the launch.
struct Origin {
  static constexpr uint32_t before = ~uint32_t{0};
  uint32_t rank = before;
  uint64_t at = 0;  ///< atom of the input; if `rank` is `before`: the cell

  auto operator<=>(const Origin&) const = default;
};

/// Holds a sum of pseudo-random numbers modulo 2^127 - 1, one per origin. Two different sums of fewer than
/// 2^64 origins are equal with a probability below 2^-60.
using Sum = unsigned __int128;
Sum sum_of(const Origin&);
Sum plus(Sum, Sum);
Sum minus(Sum, Sum);

/// Holds all values of an execution. A value is a position in this object. Values are equal if their sums
/// are, whatever the order of their addends.
class Values {
 public:
  static constexpr uint32_t none = ~uint32_t{0};

  /// \param orders  whether the caller wants tree(), order(), order_words() and quantised()
  explicit Values(bool orders = true) : orders_wanted_(orders) {}

  uint32_t origin(const Origin&);
  /// Combines two values by an operator. A value made by several operators is marked as mixed() and otherwise
  /// unknown.
  uint32_t combine(uint32_t left, uint32_t right, ReduceOp);

  /// Marks a value as rounded. An operation's result is rounded when it is stored. Inside the operation, a
  /// sum of several addends is not rounded.
  void round(uint32_t value);
  /// Returns the value that decoding yields after this one was encoded. It has the same sum.
  uint32_t encode(uint32_t value, const Codec&);
  /// Says how often each addend of a value was encoded at most, with each format.
  const Quantised& quantised(uint32_t value) const { return orders_[value].quantised; }
  /// Returns a number that is equal for values that were added up in the same order and rounded at the same
  /// places.
  uint64_t tree(uint32_t value) const { return orders_[value].tree; }
  /// Returns the same as tree(), but ignores which part of a rank's input an addend is.
  uint64_t order(uint32_t value) const { return orders_[value].order; }
  /// Returns that order in words, as in ProofFacts::order. Equal words mean equal orders.
  std::string order_words(uint32_t value) const;

  Sum sum(uint32_t value) const { return nodes_[value].sum; }
  /// Returns how often each origin is in a value. A count of 2^64 - 1 means that number or more.
  std::map<Origin, uint64_t> origins(uint32_t value) const;
  /// Returns the last operator of the value, or none if it was not combined.
  std::optional<ReduceOp> op(uint32_t value) const {
    return combined(value) ? std::optional(nodes_[value].op) : std::nullopt;
  }
  /// Returns whether the value was made by several operators.
  bool mixed(uint32_t value) const { return nodes_[value].mixed; }
  bool combined(uint32_t value) const { return nodes_[value].combined; }
  /// Returns the two values of which a combined one is made.
  std::pair<uint32_t, uint32_t> operands(uint32_t value) const {
    return {nodes_[value].left(), nodes_[value].right()};
  }
  /// Returns the only origin of a value that is not combined.
  Origin origin_of(uint32_t value) const { return nodes_[value].origin(); }

 private:
  static uint64_t scrambled(uint64_t);
  std::vector<uint32_t> addends(uint32_t value) const;

  /// Describes a value in few bytes, because a proof may have millions of values.
  struct Node {
    Sum sum;
    uint64_t inside = 0;  ///< combined: the two values; otherwise the atom of the origin
    uint32_t lowest = 0;  ///< the lowest rank whose input is in the value; not combined: the origin's rank
    ReduceOp op = ReduceOp::sum;
    bool combined = false, mixed = false, rounded = false;

    uint32_t left() const { return uint32_t(inside); }
    uint32_t right() const { return uint32_t(inside >> 32); }
    Origin origin() const { return {lowest, inside}; }
  };
  static_assert(sizeof(Node) == 32);
  struct Order {
    uint64_t tree = 0, order = 0;
    Quantised quantised{};
  };
  const bool orders_wanted_;
  std::vector<Node> nodes_;
  std::vector<Order> orders_;  // of nodes_; empty if nobody wants them
};

}  // namespace chorale::proof
