#pragma once
/// \file
/// Lowering turns the layout form of a schedule into the explicit form. The layout form has operations on
/// whole tensors. The explicit form has the operations of each stream.

#include <cstdint>
#include <optional>
#include <string_view>

#include "chorale/diagnostic.hpp"
#include "chorale/schedule/schedule.hpp"

namespace chorale::schedule {

/// Says in which order a rank processes the slices of a loop.
enum class Order : uint8_t {
  linear,   ///< slice i in turn i, on all ranks
  rotated,  ///< as linear, but each rank begins at its own slice, so that no two ranks read from one rank at
            ///< the same time
  ring,     ///< each rank exchanges with its two neighbours only: it passes on the slice that has arrived, or
            ///< the sum so far
};
/// Says how slices travel.
enum class Form : uint8_t {
  p2p,         ///< by sends and receives between pairs of ranks
  broadcast,   ///< in a gather, turn i is a broadcast from rank i
  reduce,      ///< in a sum over ranks, turn i is a reduction to rank i
  collective,  ///< as `broadcast` and `reduce`; a sum that all ranks need is one all-reduce per turn
};
/// Says on which streams the turns of a loop run.
enum class StreamStyle : uint8_t {
  split,    ///< all transfers are on one stream, in order, and the compute is on another
  ahead,    ///< as split, but a rank posts all its credits before the first turn, so that no turn waits for a
            ///< peer to reach the same turn. Needs ce_put or ce_get and Form::p2p, without Order::ring
  pool,     ///< turn i is on pool stream i % streams
  chained,  ///< as pool, with the transfers of all turns in order
};
/// Says what is sent when an operand is spread over ranks but its result is not.
enum class Reshard : uint8_t {
  before,  ///< the operand is sent, before the computation
  after,   ///< the result is sent; each rank computes it from its own operand
};

/// These are the words for Order, Form, StreamStyle and Reshard, by enumerator.
inline constexpr std::string_view order_names[] = {"linear", "rotated", "ring"};
inline constexpr std::string_view form_names[] = {"p2p", "broadcast", "reduce", "collective"};
inline constexpr std::string_view stream_style_names[] = {"split", "ahead", "pool", "chained"};
inline constexpr std::string_view reshard_names[] = {"before", "after"};

/// Holds the choices of the compiler when it lowers the layout form.
struct Lowering {
  std::optional<Order> order = {};  ///< none: rotated, or linear if all ranks take part in each turn
  Form form = Form::p2p;
  StreamStyle style = StreamStyle::split;
  Reshard reshard = Reshard::before;
  Mover via = Mover::automatic;  ///< the mover of the transfers between pairs
};

/// Lists the functions that `compute` may name in the layout form.
inline constexpr std::string_view layout_functions[] = {"set", "matmul", "linear", "add", "sum"};

/// Makes Schedule::body, streams and temporaries from Schedule::layout. The new operations have the author's
/// lines. After that, Schedule::layout has a separate operation `set` for each reshard.
///
/// \param findings  gets what is wrong; if there are any, do not use the schedule
void lower(Schedule&, const Lowering&, Diagnostics& findings);

}  // namespace chorale::schedule
