/// \file
/// The bindings that an executor keeps.
#pragma once

#include <cstddef>
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
  /// \param limit  0: none
  explicit Bindings(unsigned limit) : limit_(limit) {}

  /// The one for a call; null if there is none.
  Binding* find(const Call& call, const Arguments& arguments);

  Binding* add(std::unique_ptr<Binding> binding);

  /// After a reset: none of those there are is found any more. They go when all ranks can do without them,
  /// since graphs may hold them.
  void retire();

  /// How many have to go before one more is made, beside those that have retired.
  size_t surplus() const;

  /// The numbers of those that this rank could do without: the retired ones, then, if `others` may go as
  /// well, these, the longest unused first.
  std::vector<uint64_t> evictable(bool others) const;

  /// Lets go of the retired ones of `numbers`, and of others until there is no surplus. Their launches have
  /// ended on all ranks.
  void evict(std::span<const uint64_t> numbers);

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
  std::vector<Kept> kept_;
  Binding* last_ = nullptr;
  uint64_t made_ = 0, uses_ = 0;
};

}  // namespace chorale
