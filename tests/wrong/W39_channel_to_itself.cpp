// A channel leads from a rank to itself.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W39_channel_to_itself, Parameters&) {
  Program program(
      {.name = "W39_channel_to_itself", .collective = TestCollective{.ranks = 1, .input = 1, .output = 1}});
  const MemoryChannel channel(program, 0, 0);
  channel.signal(0);
  channel.wait(0);
  return program;
}
