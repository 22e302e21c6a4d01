/// \file
/// The bindings that an executor keeps.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend.hpp"

namespace chorale {

/// Bindings are made on all ranks or on none, in one order, and go the same way: so a number means the same
/// binding everywhere, and all ranks have equally many. That takes one limit on all.
class Bindings {
 public:
  /// \param limit         of their number; 0: none
  /// \param most_scratch  bytes of scratch of all of them; 0: any number
  explicit Bindings(unsigned limit, uint64_t most_scratch = 0) : limit_(limit), most_scratch_(most_scratch) {}

  /// The one for a call; null if there is none.
  Binding* find(const Call& call, const Arguments& arguments);

  Binding* add(std::unique_ptr<Binding> binding);

  /// After a reset: none of those there are is found any more. They go when all ranks can do without them,
  /// since graphs may hold them.
  void retire();

  /// How many have to go before one more is made, beside those that have retired.
  size_t surplus() const;

  /// Bytes of scratch of all that there are, also of the retired ones.
  uint64_t scratch() const;

  /// Whether one more that takes `more` bytes of scratch is within the limit on all of them.
  bool fits(uint64_t more) const { return most_scratch_ == 0 || scratch() + more <= most_scratch_; }

  /// Whether some have to go before one is made that takes `more` bytes of scratch.
  bool crowded(uint64_t more) const { return surplus() != 0 || !fits(more); }

  /// The numbers of those that this rank could do without: the retired ones, then, if `others` may go as
  /// well, these, the longest unused first.
  std::vector<uint64_t> evictable(bool others) const;

  /// Lets go of the retired ones of `numbers`, and of others while it is crowded(). Their launches have ended
  /// on all ranks.
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
