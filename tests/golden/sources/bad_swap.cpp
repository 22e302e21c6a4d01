#include <chorale/dsl.hpp>

using namespace chorale::dsl;

// Two ranks exchange their inputs through scratch.
CHORALE_PROGRAM(swap, Parameters&) {
  Program program({.name = "swap", .collective = AllToAll{.ranks = 2, .chunk_factor = 1}});
  const Buffer scratch[] = {Buffer(program, 0, 1), Buffer(program, 1, 1)};
  for (int rank = 0; rank < 2; ++rank) {
    Rank me(program, rank);
    const MemoryChannel channel(program, 1 - rank, rank);
    channel.put(scratch[1 - rank][0], me.get_input_buffer()[1 - rank], 0);
    channel.signal(0, SyncType::before);
    channel.wait(0, SyncType::after);
    me.copy(me.get_output_buffer()[1 - rank], scratch[rank][0], 0);
    me.copy(me.get_output_buffer()[rank], me.get_input_buffer()[rank], 0);
  }
  return program;
}
