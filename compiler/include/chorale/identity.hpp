#pragma once

#include <atomic>
#include <cstdint>

namespace chorale {

/// Gives an object a number that no other object of this process has or had. Tables can use the number as a
/// key without access to the object. Copies get new numbers, and so do objects that were moved from or
/// assigned to.
class Identity {
 public:
  Identity() noexcept : number_(next()) {}
  Identity(const Identity&) noexcept : Identity() {}
  Identity(Identity&& other) noexcept : Identity() { other.number_ = next(); }
  Identity& operator=(const Identity&) noexcept {
    number_ = next();
    return *this;
  }
  Identity& operator=(Identity&& other) noexcept {
    number_ = next();
    other.number_ = next();
    return *this;
  }

  uint64_t number() const noexcept { return number_; }

 private:
  static uint64_t next() noexcept {
    static std::atomic<uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  uint64_t number_;
};

}  // namespace chorale
