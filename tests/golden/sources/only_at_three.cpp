// This all-gather is wrong for three ranks only: it does not wait until its peers have read.
#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(only_at_three, Parameters& with) {
  const int ranks = with("ranks", 2, "number of GPUs");
  Program program(
      {.name = "only_at_three", .collective = AllGather{.ranks = ranks, .chunk_factor = 1}});
  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    const BaseBuffer out = me.get_output_buffer();
    me.copy(out[rank], me.get_input_buffer()[0], 0);
    for (int i = 1; i < ranks; ++i) {
      const int peer = (rank + i) % ranks;
      const MemoryChannel channel(program, peer, rank);
      channel.signal(i);
      channel.wait(i);
      channel.get(out[peer], program.rank(peer).get_input_buffer()[0], i);
      if (ranks == 3) continue;
      channel.signal(i);
      channel.wait(i);
    }
  }
  return program;
}
