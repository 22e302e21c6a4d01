// A slice ends past the end of the input.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W05_slice_past_end, Parameters&) {
  Program program(
      {.name = "W05_slice_past_end", .collective = TestCollective{.ranks = 1, .input = 2, .output = 3}});
  Rank me(program, 0);
  me.copy(me.get_output_buffer()[{0, 3}], me.get_input_buffer()[{0, 3}], 0);
  return program;
}
