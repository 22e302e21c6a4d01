/// \file
/// Path finds the critical path of a launch. It goes back in time from the end. From an operation that waited
/// it goes to the operation that released it, otherwise to the previous operation of the thread block.
#pragma once

#include <cstdint>
#include <vector>

#include "chorale/profile.hpp"
#include "waits.hpp"

namespace chorale::profile_of {

ProfilePlace place_of(const TraceSpan&);

class Path {
 public:
  Path(const LaunchSpans& spans, const Waits& waits) : spans_(spans), waits_(waits) {}

  /// Returns the path from `start_ns` to `end`, in order of time. No two consecutive stretches are alike.
  std::vector<ProfileStretch> to(SpanPlace end, uint64_t start_ns);

 private:
  void go_back();
  bool jump(const Release&);
  void begin(uint64_t start_ns);
  void add(ProfileStretch, uint64_t from_ns);

  const LaunchSpans& spans_;
  const Waits& waits_;
  SpanPlace here_;
  uint64_t now_ns_ = 0;
  std::vector<ProfileStretch> stretches_;  // in reverse order
};

}  // namespace chorale::profile_of
