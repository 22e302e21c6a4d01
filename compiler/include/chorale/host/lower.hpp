#pragma once
/// \file
/// Lowers the layout form of a schedule, which says what is computed of whole tensors, to the explicit form,
/// which says what lanes do.

#include <cstdint>
#include <optional>
#include <string_view>

#include "chorale/diagnostic.hpp"
#include "chorale/host/schedule.hpp"

namespace chorale::host {

/// Says in which order a rank goes through the slices of a loop.
enum class Order : uint8_t {
  linear,   ///< slice i in turn i, on all ranks
  rotated,  ///< the same, beginning at its own slice, so that no two ranks ask the same one
  ring,     ///< each rank hands on what has arrived, or been summed so far, and talks to its neighbours only
};
/// Says how slices travel.
enum class Form : uint8_t {
  p2p,         ///< between pairs
  broadcast,   ///< gathers: turn i is a broadcast from rank i
  reduce,      ///< sums over ranks: turn i is a reduction to rank i
  collective,  ///< both, and a sum that all ranks need is one all-reduce a turn
};
/// Says which lanes the turns of a loop are on.
enum class LaneStyle : uint8_t {
  split,    ///< transfers in order on one lane, compute on another
  ahead,    ///< the same, but peers are told before the first turn what they have to know first
  pool,     ///< turn i on pool lane i % lanes
  chained,  ///< the same, with the transfers of the turns in order
};
/// Says what travels when an operand is spread over ranks, but its result is not.
enum class Reshard : uint8_t {
  before,  ///< the operand travels, before the computation
  after,   ///< the result travels; it is computed where the operand is
};

/// These are the words for Order, Form, LaneStyle and Reshard, by enumerator.
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

/// `compute` may name these functions of the layout form.
inline constexpr std::string_view layout_functions[] = {"set", "matmul", "linear", "add", "sum"};

/// Makes Schedule::body, lanes and temporaries from Schedule::layout, at the lines of its author. After that,
/// reshards are operations of their own in the layout.
///
/// \param findings  if there are any, do not use the schedule
void lower(Schedule&, const Lowering&, Diagnostics& findings);

}  // namespace chorale::host
