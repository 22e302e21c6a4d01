#pragma once
// Draws numbers from a seed. They are the same with every standard library, as those of <random> are not.
// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.

#include <cstdint>

namespace chorale {

inline constexpr uint64_t splitmix64_step = 0x9e3779b97f4a7c15;

/// Returns a number of which every bit depends on every bit of `x`. splitmix64 makes a draw of its state so.
constexpr uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Draws numbers of 64 bits, all of them determined by the seed.
class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}
  uint64_t operator()() { return mix64(state_ += splitmix64_step); }

 private:
  uint64_t state_;
};

}  // namespace chorale
