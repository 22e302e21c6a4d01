/// \file
/// Finds the input and output of a run from the caller's buffers. If these do not suit the plan (in place or
/// not, reachable by peers or not), copies before and after the run make up for it.
#pragma once

#include <cstdint>
#include <functional>

#include "chorale/layout.hpp"
#include "chorale/plan.hpp"

namespace chorale::lowering {

/// Describes a copy before or after a run; 0 bytes: no copy.
struct Move {
  void* to = nullptr;
  const void* from = nullptr;
  uint64_t bytes = 0;

  bool needed() const { return bytes != 0 && from != nullptr && to != from; }
};

/// Describes one run's buffers: do before[1], then before[0], then the run on `in` and `out`, then `after`.
struct Placed {
  char *in = nullptr, *out = nullptr;
  bool staged =
      false;  ///< peers cannot reach the caller's buffers, so the data goes through StagingMemory::shared
  Move before[2], after;
};

/// Provides the staging that a backend offers for a placement.
struct StagingMemory {
  /// Returns memory of this rank alone, of Layout::sizes.input bytes.
  std::function<char*()> own;
  /// Returns memory that peers can reach, large enough for input and output. Null: peers can reach any
  /// buffer.
  std::function<char*()> shared;
  /// Returns true if peers can reach these bytes. Called only when `shared` is set.
  std::function<bool(const char* at, uint64_t bytes)> reachable;
  /// True if peers access only addresses that are multiples of 16. `reachable` must then refuse others, and
  /// `shared` must have room for 16 more bytes.
  bool aligned = false;
};

class Placement {
 public:
  Placement(const Plan&, uint32_t rank, const Layout&);

  bool in_reached() const { return in_reached_; }
  bool out_reached() const { return out_reached_; }

  /// \throws UsageError for a null or for buffers that overlap in a way that the plan does not allow
  Placed place(const void* in, void* out, const StagingMemory& staging, bool proved_in_place = false) const;

 private:
  bool parts_are_aligned() const;
  void place_for_peers(Placed& placed, const void* in, void* out, bool one_storage,
                       const StagingMemory& staging) const;

  MessageSizes sizes_;
  uint32_t rank_;
  bool plan_in_place_ = false;
  /// A plan in place has input and output in one piece, also when the call is out of place.
  bool one_storage_ = false;
  bool scatters_ = false;  ///< a plan in place has its output in its input, not the other way round
  bool output_is_complete_ = false;
  bool needs_input_ = true, needs_output_ = true;
  uint64_t in_at_ = 0, out_at_ = 0;  ///< in place: offsets of input and output in the larger of the two
  bool in_reached_ = false, out_reached_ = false;
};

}  // namespace chorale::lowering
