// Resources are reused, and the remote buffers of the next call are different.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W55_reused_resources, Parameters&) {
  Program program(
      {.name = "W55_reused_resources", .collective = AllGather{.ranks = 2}, .reuse_resources = true});
  for (int rank = 0; rank < 2; ++rank) {
    Rank me(program, rank), peer(program, 1 - rank);
    const MemoryChannel channel(program, 1 - rank, rank);
    me.copy(me.get_output_buffer()[rank], me.get_input_buffer()[0], 0);
    channel.signal(0);
    channel.wait(0);
    channel.put(peer.get_output_buffer()[rank], me.get_input_buffer()[0], 0);
    channel.signal(0);
    channel.wait(0);
  }
  return program;
}
