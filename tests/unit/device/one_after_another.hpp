#pragma once
// Runs transfers by blocks of several threads, without threads.

#include <gtest/gtest.h>

#include <cstdint>

#include "chorale/device.hpp"

namespace chorale {

/// Implements a block whose threads take turns by hand, which is enough for transfers that never wait for
/// each other. `all` and `agree` return the answer that no thread stops.
struct OneAfterAnother : HostBlock {
  void park(bool (*)(const void*), const void*) override { ADD_FAILURE() << "nothing should wait here"; }
  void sync() override { cell[0] = 1; }
  void step() override {}
  Stop stopped() override { return Stop::none; }
};

/// Calls transfer() by a group of `threads` threads.
template <class Source, class Sink>
void transfer_by(uint32_t threads, uint64_t bytes, const Source& source, const Sink& sink) {
  OneAfterAnother host;
  for (uint32_t rank = 0; rank < threads; ++rank) {
    Group group;
    group.rank = rank;
    group.size = threads;
    group.host = &host;
    ASSERT_EQ(transfer(group, bytes, source, sink), Stop::none);
  }
}

}  // namespace chorale
