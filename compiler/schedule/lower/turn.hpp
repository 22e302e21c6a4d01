#pragma once
/// \file
/// A TurnMaker makes the operations of a layout for one turn of their loop.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "layout.hpp"

namespace chorale::schedule {

inline constexpr std::string_view loop_variable = "i";

inline bool gathers_by_broadcast(Form form) { return form == Form::broadcast || form == Form::collective; }

/// Says which slice belongs to which rank in a turn.
class Slices {
 public:
  Slices() = default;
  /// \param own_last  a rank's own slice comes in the last turn, because the other slices must be transferred
  Slices(Exprs&, Order, bool own_last, Expr turns);

  Order order = Order::linear;
  Expr turn;
  Expr here;       ///< the slice that is received (gather) or sent (exchange)
  Expr back;       ///< the slice that is received (exchange), or the rank that asks for mine (gather)
  Expr is_own;     ///< true if `here` is this rank's slice
  Expr handed_on;  ///< for a ring: `here` of the turn before
};

/// Adds an operation on a stream.
Op& add(std::vector<Op>& body, OpKind, Stream, uint32_t at);
/// Returns an empty loop with this number of turns.
Op loop_over(Exprs&, Expr turns, uint32_t at);
/// Returns the stream of that name, and creates it if there is none.
Stream named_stream(Schedule&, std::string_view name);

/// Holds what a rank does for a gather or an exchange in a turn. It copies its own slice and transfers the
/// others.
struct Ends {
  Op own;
  Transfer recv, send;
};

/// Names the streams of one turn of a sum around a ring.
struct RingStreams {
  Stream moves;     ///< moves slices; the previous turn has added on it, or it waits for that turn
  Stream adds;      ///< adds; may be the same stream
  Stream computes;  ///< computes the addends of this turn; may be the same stream
};

/// Makes operations from items.
class TurnMaker {
 public:
  explicit TurnMaker(Schedule& schedule) : s_(schedule) {}
  void item(std::vector<Op>& body, const Item&, const Slices&, Stream, const Lowering&);

  /// Adds one turn of a sum around a ring.
  void ring_sum(std::vector<Op>& body, const Item&, const Slices&, const RingStreams&, const Lowering&);

  /// Returns both ends of an item that is done by transfers between pairs.
  Ends ends(const Item&, const Slices&, const Lowering&) const;
  uint32_t new_token() { return ++tokens_; }

 private:
  View part(const Item&, const View&, const std::vector<int>& axes, int sliced, Expr slice) const;
  View result(const Item&, Expr slice) const;
  View operand(const Item&, size_t k, Expr slice) const;
  void compute(std::vector<Op>& body, const Item&, const Slices&, Stream);
  Ends gather(const Item&, const Slices&, const Lowering&) const;
  Ends exchange(const Item&, const Slices&, const Lowering&) const;
  void pairwise(std::vector<Op>& body, const Item&, const Slices&, Stream, const Lowering&);
  void collective(std::vector<Op>& body, const Item&, std::string_view kind, View dst, View src, Expr root,
                  Stream);

  Schedule& s_;
  uint32_t tokens_ = 0;
};

}  // namespace chorale::schedule
