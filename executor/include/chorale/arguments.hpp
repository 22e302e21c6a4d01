#pragma once
/// \file
/// Arguments describes one call of a collective.

#include <cstdint>
#include <optional>

#include "chorale/packet_form.hpp"
#include "chorale/types.hpp"

namespace chorale {

/// Describes one call of a collective on one rank.
struct Arguments {
  /// Points to this rank's input. For a collective in place, `in` may point into `out`, or `out` into `in`.
  /// If the plan itself does not run in place, the executor copies the input first.
  const void* in = nullptr;
  /// Points to this rank's output. It may be null on a rank that gets no result, such as a rank that is not
  /// the root of a reduce, if the plan does not use the output there. In the same way `in` may be null on the
  /// receivers of a broadcast.
  void* out = nullptr;
  /// Holds the size of the message. It is the bytes of the input; for all-gather it is the bytes of the
  /// output, as in MSCCL++ and nccl-tests. It can be any whole number of elements. For all-gather,
  /// reduce-scatter and all-to-all the number of elements must be a multiple of the number of ranks. A call
  /// with 0 moves nothing, but it waits for the other ranks, because it checks that all ranks pass 0.
  uint64_t bytes = 0;
  DType dtype = DType::f32;
  std::optional<ReduceOp> op = {};        ///< replaces the plan's reduction operator
  std::optional<PacketForm> packet = {};  ///< the packet form; default: Config::packet
  /// Says that the plan is also right in place, although Plan::inplace is false; see also_in_place(). A call
  /// in place then does not copy the input. The value may differ by rank.
  bool proved_in_place = false;
};

}  // namespace chorale
