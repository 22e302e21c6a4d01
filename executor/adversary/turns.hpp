#pragma once
/// \file
/// Turns picks the agent that takes the next step. The choice is drawn from a seed, and unfair on purpose.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "chorale/splitmix64.hpp"

namespace chorale::adversary {

class Draw : public SplitMix64 {
 public:
  using SplitMix64::SplitMix64;
  uint32_t below(uint32_t limit) { return uint32_t(((*this)() >> 32) * limit >> 32); }
  bool one_in(uint32_t n) { return below(n) == 0; }
};

/// Tells how often an agent is picked. Brisk agents are picked at any time, slow ones now and then, and
/// frozen ones only when no other agent can go on. Most races show when one agent is as late as possible.
enum class Speed : uint8_t { brisk, slow, frozen };

class Turns {
 public:
  Turns() : draw_(0) {}

  void begin(uint32_t agents, uint64_t seed) {
    draw_ = Draw(seed);
    speed_.assign(agents, Speed::brisk);
    at_.assign(agents, absent);
    for (auto& list : active_) list.clear();
  }

  Draw& draw() { return draw_; }

  void set_speed(uint32_t agent, Speed speed) { speed_[agent] = std::max(speed_[agent], speed); }
  /// Draws a speed: one in 2 * `unfair` is slow, and one in 2 * `unfair` is frozen. If `unfair` is 0, all are
  /// brisk.
  Speed draw_speed(uint32_t unfair) {
    if (unfair == 0) return Speed::brisk;
    const uint32_t drawn = draw_.below(2 * unfair);
    return drawn == 0 ? Speed::frozen : drawn == 1 ? Speed::slow : Speed::brisk;
  }

  void activate(uint32_t agent) {
    if (at_[agent] != absent) return;
    auto& list = active_[size_t(speed_[agent])];
    at_[agent] = uint32_t(list.size());
    list.push_back(agent);
  }

  void park(uint32_t agent) {
    if (at_[agent] == absent) return;
    auto& list = active_[size_t(speed_[agent])];
    const uint32_t last = list.back();
    list[at_[agent]] = last;
    at_[last] = at_[agent];
    list.pop_back();
    at_[agent] = absent;
  }

  static constexpr uint32_t absent = ~uint32_t{0};

  /// Picks the agent that takes the next step. Returns `absent` if no agent can.
  uint32_t pick() {
    auto& [brisk, slow, frozen] = active_;
    if (!brisk.empty() && (slow.empty() || !draw_.one_in(64)))
      return brisk[draw_.below(uint32_t(brisk.size()))];
    if (!slow.empty()) return slow[draw_.below(uint32_t(slow.size()))];
    if (frozen.empty()) return absent;
    const uint32_t agent = frozen[draw_.below(uint32_t(frozen.size()))];
    if (draw_.one_in(4)) {  // the agent has been late enough
      park(agent);
      speed_[agent] = Speed::brisk;
      activate(agent);
    }
    return agent;
  }

 private:
  Draw draw_;
  std::vector<Speed> speed_;
  std::vector<uint32_t> at_;  ///< the agent's index in its list
  std::array<std::vector<uint32_t>, 3> active_;
};

}  // namespace chorale::adversary
