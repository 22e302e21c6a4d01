/// \file
/// Makes lists of messages that match on all ranks. They depend on a number, for tests on the CPU and on
/// GPUs.
#pragma once

#include <cstdint>
#include <vector>

namespace chorale::test {

inline uint64_t drawn(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

/// Describes one message of a call.
struct TestMessage {
  int from = 0, to = 0;
  uint64_t bytes = 0;
  uint64_t number = 0;                ///< a unique number, which makes its bytes unique
  uint64_t odd_from = 0, odd_to = 0;  ///< bytes past an aligned address, at either end

  uint8_t byte(uint64_t at) const { return uint8_t(drawn(number * 0x10001 + at / 8) >> (at % 8 * 8)); }
};

/// Returns the messages that call `call` of a test moves between `ranks` ranks. Each rank sends up to `most`
/// messages to each rank, including itself, and none to some ranks. Sizes are 0, small, or up to `longest`.
inline std::vector<TestMessage> messages_of(uint64_t call, int ranks, int most, uint64_t longest) {
  std::vector<TestMessage> all;
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      const uint64_t seed = drawn(call * 1000003 + uint64_t(from * 64 + to));
      const int n = int(seed % uint64_t(most + 1));
      for (int at = 0; at < n; ++at) {
        const uint64_t one = drawn(seed + uint64_t(at));
        TestMessage message;
        message.from = from;
        message.to = to;
        message.bytes = one % 8 == 0 ? 0 : (one >> 8) % (one % 8 < 4 ? 40 : longest + 1);
        message.number = drawn(one);
        message.odd_from = one >> 20 & 1 ? one >> 24 & 15 : 0;
        message.odd_to = one >> 21 & 1 ? one >> 28 & 15 : 0;
        all.push_back(message);
      }
    }
  }
  return all;
}

}  // namespace chorale::test
