// These tests compare clocks with plain vectors of counts.

#include "compiler/proof/order/clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace chorale::proof {
namespace {

/// Holds a clock and the counts that it should have.
struct Checked {
  Clock clock;
  std::vector<uint32_t> counts;

  Checked(Clock::Room& room, uint32_t chains) : clock(room), counts(chains) {}

  void raise(uint32_t chain, uint32_t segment) {
    clock.raise(chain, segment);
    counts[chain] = std::max(counts[chain], segment);
  }
  void join(const Checked& other) {
    clock.join(other.clock);
    for (size_t chain = 0; chain < counts.size(); ++chain)
      counts[chain] = std::max(counts[chain], other.counts[chain]);
  }
  void expect_equal() const {
    for (uint32_t chain = 0; chain < counts.size(); ++chain) ASSERT_EQ(clock[chain], counts[chain]) << chain;
  }
};

class Clocks : public testing::TestWithParam<uint32_t> {};

/// Agents raise chains near their own, pass copies of their clocks on, and join them. Every third one has no
/// name, and sometimes forgets what it knew.
TEST_P(Clocks, KnowWhatPlainVectorsKnow) {
  const uint32_t chains = GetParam();
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    Clock::Room room(chains);
    std::vector<Checked> agents, sent;
    std::vector<uint32_t> segments(chains);
    agents.reserve(9);  // a clock that is moved has no name
    for (uint32_t at = 0; at < 9; ++at) {
      agents.emplace_back(room, chains);
      if (at % 3 != 2) agents.back().clock.name(at + 1);
    }
    for (uint32_t step = 0; step < 300; ++step) {
      const uint32_t at = uint32_t(random() % agents.size()), what = random() % 8;
      if (what < 3) {
        const uint32_t chain = uint32_t(at * 37 + random() % 3) % chains;
        agents[at].raise(chain, ++segments[chain]);
      } else if (what < 5) {
        sent.push_back(agents[at]);
      } else if (what < 7 && !sent.empty()) {
        const size_t message = random() % sent.size();
        agents[at].join(sent[message]);
        if (random() % 2) sent.erase(sent.begin() + ptrdiff_t(message));
      } else if (at % 3 == 2) {
        const Checked& other = agents[random() % agents.size()];
        agents[at].clock = other.clock;
        agents[at].counts = other.counts;
      }
    }
    for (const std::vector<Checked>* const all : {&agents, &sent}) {
      for (const Checked& one : *all) one.expect_equal();
    }
  }
}

// These are one leaf, several leaves, and trees with inner nodes on one, two and three levels.
INSTANTIATE_TEST_SUITE_P(Of, Clocks, testing::Values(1, 32, 33, 200, 256, 257, 2100));

}  // namespace
}  // namespace chorale::proof
