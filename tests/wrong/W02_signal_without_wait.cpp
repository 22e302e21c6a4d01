// No rank waits for the signal.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W02_signal_without_wait, Parameters&) {
  Program program(
      {.name = "W02_signal_without_wait", .collective = TestCollective{.ranks = 2, .input = 1, .output = 1}});
  MemoryChannel channel(program, 1, 0);
  channel.signal(0);
  return program;
}
