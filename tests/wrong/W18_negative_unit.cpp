// A pipeline has -1 chunks in turns of -16 bytes.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W18_negative_unit, Parameters&) {
  Program program(
      {.name = "W18_negative_unit", .collective = TestCollective{.ranks = 1, .input = 1, .output = 1}});
  Rank me(program, 0);
  const LoopIterationContext loop(program, -16, -1);
  me.copy(me.get_output_buffer()[0], me.get_input_buffer()[0], 0);
  return program;
}
