// A reduction through a channel has its result on the other rank.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W40_result_elsewhere, Parameters&) {
  Program program(
      {.name = "W40_result_elsewhere", .collective = TestCollective{.ranks = 2, .input = 1, .output = 1}});
  Rank me(program, 0), peer(program, 1);
  const MemoryChannel channel(program, 1, 0);
  channel.reduce(me.get_input_buffer()[0], {peer.get_input_buffer()[0]}, 0, peer.get_output_buffer()[0]);
  return program;
}
