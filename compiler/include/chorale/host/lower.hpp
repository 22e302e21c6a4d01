#pragma once
/// \file
/// From the layout form of a schedule, which says what is computed of whole tensors, to the explicit form,
/// which says what lanes do.

#include <cstdint>
#include <optional>
#include <string_view>

#include "chorale/diagnostic.hpp"
#include "chorale/host/schedule.hpp"

namespace chorale::host {

/// In which order a rank goes through the slices of a loop.
enum class Order : uint8_t {
  linear,   ///< slice i in turn i, on all ranks
  rotated,  ///< beginning at its own, so that no two ranks ask the same one
  ring,     ///< what has arrived, or been summed so far, is handed on: a rank talks to its neighbours only
};
/// How slices travel.
enum class Form : uint8_t {
  p2p,         ///< between pairs
  broadcast,   ///< gathers: turn i is a broadcast from rank i
  reduce,      ///< sums over ranks: turn i is a reduction to rank i
  collective,  ///< both, and a sum that all ranks need is one all-reduce a turn
};
/// Which lanes the turns of a loop are on.
enum class LaneStyle : uint8_t {
  split,    ///< transfers in order on one, compute on another
  ahead,    ///< the same, with what peers have to know first said before the first turn
  pool,     ///< turn i on pool lane i % lanes
  chained,  ///< the same, with the transfers of the turns in order
};
/// Where an operand is made whole that is spread over ranks, but not in what is computed of it.
enum class Reshard : uint8_t {
  before,  ///< the operand travels
  after,   ///< it is computed where the operand is, and the result travels
};

/// By Order, Form, LaneStyle and Reshard.
inline constexpr std::string_view order_names[] = {"linear", "rotated", "ring"};
inline constexpr std::string_view form_names[] = {"p2p", "broadcast", "reduce", "collective"};
inline constexpr std::string_view lane_style_names[] = {"split", "ahead", "pool", "chained"};
inline constexpr std::string_view reshard_names[] = {"before", "after"};

struct Lowering {
  std::optional<Order> order = {};  ///< rotated, unless ranks go through slices together
  Form form = Form::p2p;
  LaneStyle style = LaneStyle::split;
  Reshard reshard = Reshard::before;
  Mover via = Mover::automatic;
};

/// Functions of the layout form; what `compute` may name.
inline constexpr std::string_view layout_functions[] = {"set", "matmul", "linear", "add", "sum"};

/// Makes Schedule::body, lanes and temporaries from Schedule::layout, at the lines of its author. In
/// the layout, reshards are operations of their own then.
///
/// \param findings  where there are any the schedule is not to be used
void lower(Schedule&, const Lowering&, Diagnostics& findings);

}  // namespace chorale::host
