// A buffer has 2^40 chunks.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W52_too_many_chunks, Parameters&) {
  Program program(
      {.name = "W52_too_many_chunks", .collective = TestCollective{.ranks = 1, .input = 1, .output = 1}});
  Rank me(program, 0);
  const Buffer scratch(program, 0, int64_t{1} << 40);
  me.copy(scratch[{0, 1}], me.get_input_buffer()[0], 0);
  return program;
}
