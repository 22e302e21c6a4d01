// Rank 5 is used in a program with 2 ranks.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W54_no_such_rank, Parameters&) {
  Program program(
      {.name = "W54_no_such_rank", .collective = TestCollective{.ranks = 2, .input = 1, .output = 1}});
  Rank me(program, 5);
  me.copy(me.get_output_buffer()[0], me.get_input_buffer()[0], 0);
  return program;
}
