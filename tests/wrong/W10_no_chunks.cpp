// A copy has no chunks.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W10_no_chunks, Parameters&) {
  Program program(
      {.name = "W10_no_chunks", .collective = TestCollective{.ranks = 1, .input = 4, .output = 4}});
  Rank me(program, 0);
  me.copy(me.get_output_buffer()[{2, 2}], me.get_input_buffer()[{2, 2}], 0);
  return program;
}
