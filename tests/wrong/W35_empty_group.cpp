// A thread block group has no thread blocks.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W35_empty_group, Parameters&) {
  Program program(
      {.name = "W35_empty_group", .collective = TestCollective{.ranks = 1, .input = 1, .output = 1}});
  Rank me(program, 0);
  const ThreadBlockGroup group(NumberList{});
  me.copy(me.get_output_buffer()[0], me.get_input_buffer()[0], group);
  return program;
}
