// The turns of a pipeline take 0 bytes.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W17_unit_of_zero, Parameters&) {
  Program program(
      {.name = "W17_unit_of_zero", .collective = TestCollective{.ranks = 1, .input = 1, .output = 1}});
  Rank me(program, 0);
  const LoopIterationContext loop(program, 0, 1);
  me.copy(me.get_output_buffer()[0], me.get_input_buffer()[0], 0);
  return program;
}
