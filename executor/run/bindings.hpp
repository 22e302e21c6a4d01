/// \file
/// An executor keeps its bindings here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "../binding/backend.hpp"

namespace chorale {

/// Keeps the bindings of one executor. All ranks or none make a binding, in one order, and drop it the same
/// way. So a number means the same binding on all ranks, and all have equally many. For that, all ranks need
/// the same limit.
class Bindings {
 public:
  /// \param limit         of their number; 0: no limit
  /// \param most_scratch  bytes of scratch of all of them together; 0: any number
  explicit Bindings(unsigned limit, uint64_t most_scratch = 0) : limit_(limit), most_scratch_(most_scratch) {}

  /// Returns the binding for a call; null if there is none.
  Binding* find(const Call& call, const Arguments& arguments);

  Binding* add(std::unique_ptr<Binding> binding);

  /// Retires all bindings after a reset, so that find() finds none of them any more. They go when all ranks
  /// can do without them, because graphs may hold them.
  void retire();

  /// Returns how many bindings have to go before one more is made, beside the retired ones.
  size_t surplus() const;

  /// Returns the bytes of scratch of all bindings, retired ones included.
  uint64_t scratch() const;

  /// Returns whether one more binding, with `more` bytes of scratch, keeps all of them within the limit.
  bool fits(uint64_t more) const { return most_scratch_ == 0 || scratch() + more <= most_scratch_; }

  /// Returns whether bindings have to go before one is made that takes `more` bytes of scratch.
  bool crowded(uint64_t more) const { return surplus() != 0 || !fits(more); }

  /// Returns the numbers of the bindings that this rank could do without: first the retired ones and then, if
  /// `others` may go as well, the others, the longest unused first.
  std::vector<uint64_t> evictable(bool others) const;

  /// Drops the retired bindings of `numbers`, and others of them while this is crowded(). Their launches must
  /// have ended on all ranks.
  void evict(std::span<const uint64_t> numbers, uint64_t more = 0);

  size_t size() const { return kept_.size(); }
  void add_trace(std::vector<TraceSpan>& spans) const;

 private:
  struct Kept {
    uint64_t number;
    uint64_t last_use;  ///< when it became the one used last
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
