// A thread block reads what another writes, and nothing orders the two.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W04_blocks_without_order, Parameters&) {
  Program program({.name = "W04_blocks_without_order",
                   .collective = TestCollective{.ranks = 1, .input = 1, .output = 1}});
  Rank me(program, 0);
  const Buffer scratch(program, 0, 1);
  me.copy(scratch[0], me.get_input_buffer()[0], 0);
  me.copy(me.get_output_buffer()[0], scratch[0], 1);
  return program;
}
