// A channel leads to a rank below 0.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W08_negative_rank, Parameters&) {
  Program program(
      {.name = "W08_negative_rank", .collective = TestCollective{.ranks = 2, .input = 1, .output = 1}});
  MemoryChannel channel(program, -1, 0);
  channel.signal(0);
  channel.wait(0);
  return program;
}
