// A chunk made by hand is far outside its buffer.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W06_chunk_by_hand, Parameters&) {
  Program program(
      {.name = "W06_chunk_by_hand", .collective = TestCollective{.ranks = 1, .input = 5, .output = 5}});
  Rank me(program, 0);
  me.copy(me.get_output_buffer()[{0, 5}], Chunk(0, BufferKind::input, 100, 5), 0);
  return program;
}
