// A get fetches 2 chunks into 1.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W32_get_of_another_size, Parameters&) {
  Program program(
      {.name = "W32_get_of_another_size", .collective = TestCollective{.ranks = 2, .input = 2, .output = 2}});
  Rank me(program, 0), peer(program, 1);
  const MemoryChannel channel(program, 1, 0);
  channel.get(me.get_output_buffer()[0], peer.get_input_buffer()[{0, 2}], 0);
  return program;
}
