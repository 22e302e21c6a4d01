#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "executor/binding/backend.hpp"

namespace chorale {

/// Holds the bindings of one executor. All ranks make the same bindings in the same order, and drop the same
/// ones. So a number identifies the same binding on all ranks, and all ranks have the same number of
/// bindings. This needs the same limit on all ranks.
class Bindings {
 public:
  /// \param limit         the most bindings to keep; 0: no limit
  /// \param most_scratch  the most bytes of scratch of all bindings together; 0: no limit
  explicit Bindings(unsigned limit, uint64_t most_scratch = 0) : limit_(limit), most_scratch_(most_scratch) {}

  /// Returns the binding for a call; null if there is none.
  Binding* find(const Call& call, const Arguments& arguments);

  Binding* add(std::unique_ptr<Binding> binding);

  /// Retires all bindings after a reset, so that find() no longer finds them. They are dropped when all ranks
  /// can drop them, because graphs may still hold them.
  void retire();

  /// Returns how many bindings must be dropped before another one is made, not counting retired ones.
  size_t surplus() const;

  /// Returns the bytes of scratch of all bindings, including retired ones.
  uint64_t scratch() const;

  /// Returns whether another binding with `more` bytes of scratch stays within the limit.
  bool fits(uint64_t more) const { return most_scratch_ == 0 || scratch() + more <= most_scratch_; }

  /// Returns whether bindings must be dropped before a binding with `more` bytes of scratch is made.
  bool crowded(uint64_t more) const { return surplus() != 0 || !fits(more); }

  /// Returns the numbers of the bindings that this rank can drop: first the retired ones, and then, if
  /// `others` is true, the others, with the longest unused first.
  std::vector<uint64_t> evictable(bool others) const;

  /// Drops the retired bindings among `numbers`, and then others among them as long as crowded() is true.
  /// Their launches must have ended on all ranks.
  void evict(std::span<const uint64_t> numbers, uint64_t more = 0);

  size_t size() const { return kept_.size(); }
  void add_trace(std::vector<TraceSpan>& spans) const;

 private:
  struct Kept {
    uint64_t number;
    uint64_t last_use;  ///< the time, counted in uses, when it last became the current binding
    std::unique_ptr<Binding> binding;
    bool retired = false;
  };

  const unsigned limit_;
  const uint64_t most_scratch_;
  std::vector<Kept> kept_;
  Binding* last_ = nullptr;
  uint64_t made_ = 0, uses_ = 0;
};

}  // namespace chorale
