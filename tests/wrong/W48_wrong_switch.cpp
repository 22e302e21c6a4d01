// One switch channel has a rank twice, and one is used below chunk 0.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W48_wrong_switch, Parameters&) {
  Program program(
      {.name = "W48_wrong_switch", .collective = TestCollective{.ranks = 2, .input = 1, .output = 1}});
  const SwitchChannel twice(program, {0, 1, 1}, BufferKind::input);
  const SwitchChannel inputs(program, {0, 1}, BufferKind::input);
  inputs.at_rank(0).reduce(-1, 1, program.rank(0).get_output_buffer()[0], 0);
  return program;
}
