/// \file
/// Where a run's input and output are, given what the caller passed: in place or not, and copies around the
/// run where the plan wants it otherwise.
#pragma once

#include <cstdint>
#include <functional>

#include "chorale/layout.hpp"
#include "chorale/plan.hpp"

namespace chorale::interpreter {

/// A copy before or after a run; 0 bytes: none.
struct Move {
  void* to = nullptr;
  const void* from = nullptr;
  uint64_t bytes = 0;

  bool needed() const { return bytes != 0 && from != nullptr && to != from; }
};

/// Of one run: the first move, then the second, then the run on `in` and `out`, then `after`.
struct Placed {
  char *in = nullptr, *out = nullptr;
  bool staged = false;  ///< peers do not reach what was passed: it goes through Rooms::shared
  Move before[2], after;
};

/// What a backend offers for it.
struct Rooms {
  /// Memory of this rank alone, of Layout::sizes.input bytes.
  std::function<char*()> own;
  /// Memory that peers reach, of input and output bytes; null: everything passed is within their reach.
  std::function<char*()> shared;
  /// Whether peers reach these bytes; only asked where `shared` is set.
  std::function<bool(const char* at, uint64_t bytes)> reachable;
};

class Placement {
 public:
  Placement(const Plan&, uint32_t rank, const Layout&);

  bool in_reached() const { return in_reached_; }
  bool out_reached() const { return out_reached_; }

  /// \throws UsageError for a null or for buffers that overlap as they must not
  Placed place(const void* in, void* out, const Rooms& rooms) const;

 private:
  void place_for_peers(Placed& placed, const void* in, void* out, bool one_storage, const Rooms& rooms) const;

  MessageSizes sizes_;
  uint32_t rank_;
  bool plan_in_place_ = false;
  bool one_storage_ = false;  ///< input and output of a plan in place are one piece, also out of place
  bool scatters_ = false;     ///< a plan in place has its output in its input, not the other way round
  bool output_is_complete_ = false;
  bool needs_input_ = true;
  uint64_t in_at_ = 0, out_at_ = 0;  ///< in place: of input and output, in the larger one
  bool in_reached_ = false, out_reached_ = false;
};

}  // namespace chorale::interpreter
