/// \file
/// Makes messages in which every byte identifies its message, and ranks that run them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "chorale/launch_cpu.hpp"
#include "tests/unit/message_of_error.hpp"

namespace chorale::test {

inline uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

/// Returns small whole numbers, so that sums of a few are exact in every type.
template <class T>
T value_at(uint64_t message, uint64_t index) {
  const uint64_t value = mix(message * 1000003 + index + 1);
  if constexpr (is_narrow_float<T>) {
    return narrow<T>(float(int(value % 8)));
  } else {
    return T(value % (sizeof(T) == 1 ? 251 : 1000));
  }
}

template <class T>
std::vector<T> message_of(uint64_t message, uint64_t n) {
  std::vector<T> result(n);
  for (uint64_t index = 0; index < n; ++index) result[index] = value_at<T>(message, index);
  return result;
}

/// Returns the index of the first element that differs; n if none does.
template <class T>
uint64_t first_difference(const T* got, const T* expected, uint64_t n) {
  for (uint64_t index = 0; index < n; ++index) {
    if (std::memcmp(&got[index], &expected[index], sizeof(T)) != 0) return index;
  }
  return n;
}

#define EXPECT_MESSAGE(got, expected) \
  EXPECT_EQ(::chorale::test::first_difference((got).data(), (expected).data(), (expected).size()), \
            (expected).size())

/// Returns options for rings of `depth` slots of `slot` bytes on each of `channels` channels.
inline RendezvousOptions rings(uint32_t channels, uint32_t depth, uint64_t slot) {
  RendezvousOptions options;
  options.max_channels = channels;
  options.depth = depth;
  options.per_peer_bytes = slot * depth * channels;
  return options;
}

inline RendezvousOptions with_packets(RendezvousOptions options, uint64_t bytes) {
  options.packet_bytes = bytes;
  return options;
}

}  // namespace chorale::test
