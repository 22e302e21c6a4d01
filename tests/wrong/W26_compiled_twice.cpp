// A program is compiled twice: the second plan equals the first.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W26_compiled_twice, Parameters&) {
  Program program(
      {.name = "W26_compiled_twice", .collective = AllGather{.ranks = 1, .chunk_factor = 2}, .instances = 2});
  Rank me(program, 0);
  const Buffer scratch(program, 0, 2);
  me.copy(scratch[{0, 2}], me.get_input_buffer()[{0, 2}], 0);
  me.copy(me.get_output_buffer()[{0, 2}], scratch[{0, 2}], 0);
  program.compile();  // the command compiles it again
  return program;
}
