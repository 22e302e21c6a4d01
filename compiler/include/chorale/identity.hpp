#pragma once

#include <atomic>
#include <cstdint>

namespace chorale {

/// Gives an object a number that no other object of this process has or had. By this number you find what is
/// known about an object without looking at the object. A copy gets a number of its own, and so does an
/// object that was moved from or assigned to.
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
