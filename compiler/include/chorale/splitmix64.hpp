#pragma once
// Draws numbers from a seed. They are the same with every standard library, unlike the distributions of
// `<random>`.
// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.

#include <cstdint>

namespace chorale {

inline constexpr uint64_t splitmix64_step = 0x9e3779b97f4a7c15;

/// Mixes `x` so that every bit of the result depends on every bit of `x`. SplitMix64 applies it to its state.
constexpr uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Draws numbers of 64 bits. The seed determines all of them.
class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}
  uint64_t operator()() { return mix64(state_ += splitmix64_step); }

 private:
  uint64_t state_;
};

}  // namespace chorale
