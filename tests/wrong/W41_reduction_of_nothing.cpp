// A reduction through a channel has no remote chunk.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W41_reduction_of_nothing, Parameters&) {
  Program program({.name = "W41_reduction_of_nothing",
                   .collective = TestCollective{.ranks = 2, .input = 1, .output = 1}});
  const MemoryChannel channel(program, 1, 0);
  channel.reduce(program.rank(0).get_input_buffer()[0], {}, 0);
  return program;
}
