// Two ranks swap their inputs.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(pair_exchange, Parameters& with) {
  with.summary("Two ranks swap their inputs.");
  const int chunks = with("chunks", 1, "chunks of the message", {.min = 1, .max = 64});
  Program program({.name = "pair_exchange", .collective = SendRecv{.ranks = 2, .chunk_factor = chunks}});
  for (int rank = 0; rank < 2; ++rank) {
    const int peer = 1 - rank;
    MemoryChannel channel(program, peer, rank);
    channel.signal(0, SyncType::none, true);
    channel.wait(0, SyncType::after, true);
    channel.put(program.rank(peer).get_output_buffer()[{0, chunks}],
                program.rank(rank).get_input_buffer()[{0, chunks}], 0);
    channel.signal(0, SyncType::before);
    channel.wait(0, SyncType::none);
  }
  return program;
}
