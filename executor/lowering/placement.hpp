/// \file
/// Finds the input and output of a run from the caller's buffers. If these do not suit the plan (in place or
/// not, reachable by peers or not), copies before and after the run make up for it.
#pragma once

#include <cstdint>
#include <functional>

#include "chorale/layout.hpp"
#include "chorale/plan.hpp"

namespace chorale::lowering {

/// Describes a copy of rows of bytes before or after a run; 0 bytes: no copy.
struct Move {
  void* to = nullptr;
  const void* from = nullptr;
  uint64_t bytes = 0;  ///< of each row
  uint64_t rows = 1;
  uint64_t to_distance = 0, from_distance = 0;  ///< from row to row, in bytes

  bool needed() const { return bytes != 0 && from != nullptr && to != from; }
};

/// Describes one run's buffers: do before[1], then before[0], then the run on `in` and `out`, then `after`.
struct Placed {
  char *in = nullptr, *out = nullptr;
  uint64_t in_gap = 0, out_gap = 0;    ///< see Gaps
  uint64_t in_span = 0, out_span = 0;  ///< bytes from the start of the first part to the end of the last one
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
  /// \param part_distance  the bytes from one part of the caller's buffers to the next; 0: they are adjacent.
  /// Copies of the buffers have adjacent parts
  Placement(const Plan&, uint32_t rank, const Layout&, uint64_t part_distance = 0);

  bool in_reached() const { return in_reached_; }
  bool out_reached() const { return out_reached_; }
  /// Return how many bytes of the caller's buffers the parts span.
  uint64_t in_span() const { return in_.span(in_.gap); }
  uint64_t out_span() const { return out_.span(out_.gap); }

  /// \throws UsageError for a null or for buffers that overlap in a way that the plan does not allow
  Placed place(const void* in, void* out, const StagingMemory& staging, bool proved_in_place = false) const;

 private:
  /// Describes the parts of a buffer.
  struct Parts {
    uint64_t n = 1, bytes = 0;
    uint64_t gap = 0;  ///< bytes between two parts of the caller's buffer

    uint64_t all() const { return n * bytes; }
    uint64_t span(uint64_t with_gap) const { return all() + (n - 1) * with_gap; }
    Move copy(void* to, uint64_t to_gap, const void* from, uint64_t from_gap) const;
  };

  static Parts parts_of(uint64_t bytes, const Layout&, uint64_t part_distance);
  bool parts_are_aligned() const;
  void place_for_peers(Placed& placed, const void* in, void* out, bool one_storage,
                       const StagingMemory& staging) const;
  void copy_output(Placed& placed, void* out, char* to) const;

  Parts in_, out_;
  uint32_t rank_;
  bool plan_in_place_ = false;
  /// A plan in place has input and output in one piece, also when the call is out of place.
  bool one_storage_ = false;
  bool scatters_ = false;  ///< a plan in place has its output in its input, not the other way round
  bool output_is_complete_ = false;
  bool needs_input_ = true, needs_output_ = true;
  // In place, these are the offsets of input and output in the larger of the two.
  uint64_t in_at_ = 0, out_at_ = 0;            ///< in the caller's buffer
  uint64_t in_copy_at_ = 0, out_copy_at_ = 0;  ///< in a copy
  bool in_reached_ = false, out_reached_ = false;
};

}  // namespace chorale::lowering
