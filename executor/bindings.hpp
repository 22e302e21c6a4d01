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
/// binding everywhere, and all ranks have equally many.
class Bindings {
 public:
  /// \param limit  0: none
  explicit Bindings(unsigned limit) : limit_(limit) {}

  /// The one for a call; null if there is none.
  Binding* find(const Call& call, const Arguments& arguments);

  Binding* add(std::unique_ptr<Binding> binding);
  void clear();

  /// How many have to go before one more is made.
  size_t surplus() const { return limit_ != 0 && kept_.size() >= limit_ ? kept_.size() - limit_ + 1 : 0; }

  /// The numbers of those that this rank could do without, the longest unused first.
  std::vector<uint64_t> evictable() const;

  /// Their launches have ended on all ranks.
  void evict(std::span<const uint64_t> numbers);

  size_t size() const { return kept_.size(); }
  void add_trace(std::vector<TraceSpan>& spans) const;

 private:
  struct Kept {
    uint64_t number;
    uint64_t last_use;  ///< when it became the one used last
    std::unique_ptr<Binding> binding;
  };

  const unsigned limit_;
  std::vector<Kept> kept_;
  Binding* last_ = nullptr;
  uint64_t made_ = 0, uses_ = 0;
};

}  // namespace chorale
