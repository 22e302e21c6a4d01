// There are 501 thread blocks, 499 of them empty, and a barrier between the first and the last.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W57_many_empty_blocks, Parameters&) {
  Program program({.name = "W57_many_empty_blocks", .collective = AllGather{.ranks = 1}});
  Rank me(program, 0);
  const Buffer scratch(program, 0, 1);
  me.copy(scratch[0], me.get_input_buffer()[0], 0);
  me.barrier({0, 500});
  me.copy(me.get_output_buffer()[0], scratch[0], 500);
  return program;
}
