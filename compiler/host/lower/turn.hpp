#pragma once
/// \file
/// What the operations of a layout are in one turn of their loop.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "layout.hpp"

namespace chorale::host {

inline constexpr std::string_view loop_variable = "i";

inline bool gathers_by_broadcast(Form form) { return form == Form::broadcast || form == Form::collective; }

/// Which slice is whose in a turn.
class Slices {
 public:
  Slices() = default;
  /// \param own_last  what a rank keeps comes in the last turn, since the others' has to travel
  Slices(Exprs&, Order, bool own_last, Expr turns);

  Order order = Order::linear;
  Expr turn;
  Expr here;       ///< of a gather: what comes; of an exchange: what goes
  Expr back;       ///< of an exchange: what comes; of a gather: who asks for mine
  Expr is_own;     ///< whether `here` is this rank's
  Expr handed_on;  ///< of a ring: `here` of the turn before
};

/// Adds an operation on a lane.
Op& add(std::vector<Op>& body, OpKind, Lane, uint32_t at);
/// An empty loop of so many turns.
Op loop_over(Exprs&, Expr turns, uint32_t at);
/// The lane of that name, made if there is none.
Lane named_lane(Schedule&, std::string_view name);

/// What a rank does of a gather or an exchange in a turn: the slice that is its own has to be copied, the
/// others travel.
struct Ends {
  Op own;
  Transfer recv, send;
};

/// Where a turn of a sum around a ring is.
struct RingLanes {
  Lane moves;     ///< on which the turn before has added, or that waits for it
  Lane adds;      ///< may be the same
  Lane computes;  ///< the addends of this turn; may be the same
};

/// Makes operations of items.
class TurnMaker {
 public:
  explicit TurnMaker(Schedule& schedule) : s_(schedule) {}
  void item(std::vector<Op>& body, const Item&, const Slices&, Lane, const Lowering&);

  /// Of a sum around a ring.
  void ring_sum(std::vector<Op>& body, const Item&, const Slices&, const RingLanes&, const Lowering&);

  /// Of transfers between pairs.
  Ends ends(const Item&, const Slices&, const Lowering&) const;
  uint32_t new_token() { return ++tokens_; }

 private:
  View part(const Item&, const View&, const std::vector<int>& axes, int sliced, Expr slice) const;
  View result(const Item&, Expr slice) const;
  View operand(const Item&, size_t k, Expr slice) const;
  void compute(std::vector<Op>& body, const Item&, const Slices&, Lane);
  Ends gather(const Item&, const Slices&, const Lowering&) const;
  Ends exchange(const Item&, const Slices&, const Lowering&) const;
  void pairwise(std::vector<Op>& body, const Item&, const Slices&, Lane, const Lowering&);
  void collective(std::vector<Op>& body, const Item&, std::string_view kind, View dst, View src, Expr root,
                  Lane);

  Schedule& s_;
  uint32_t tokens_ = 0;
};

}  // namespace chorale::host
