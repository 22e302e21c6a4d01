// Both ranks wait before they signal.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W01_wait_before_signal, Parameters&) {
  Program program(
      {.name = "W01_wait_before_signal", .collective = TestCollective{.ranks = 2, .input = 1, .output = 1}});
  for (int rank = 0; rank < 2; ++rank) {
    MemoryChannel channel(program, 1 - rank, rank);
    channel.wait(0);
    channel.signal(0);
  }
  return program;
}
