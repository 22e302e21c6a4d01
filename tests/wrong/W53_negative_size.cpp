// A buffer has -4 chunks, and another one would then overlap it.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W53_negative_size, Parameters&) {
  Program program(
      {.name = "W53_negative_size", .collective = TestCollective{.ranks = 1, .input = 4, .output = 4}});
  Rank me(program, 0);
  const Buffer first(program, 0, 4), wrong(program, 0, -4), second(program, 0, 4);
  me.copy(first[{0, 4}], me.get_input_buffer()[{0, 4}], 0);
  me.copy(second[{0, 4}], me.get_input_buffer()[{0, 4}], 0);
  return program;
}
