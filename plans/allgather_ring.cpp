// This all-gather goes around a ring: every part travels from its owner to the right until all ranks have it.
//
// A rank first tells its left neighbour that it has been launched, so that its output may be written. This
// signal is relaxed, because nothing of this launch has to be visible yet. The left neighbour writes every
// part into it once, and signals. Then the rank passes the part on. A rank returns when the last part has
// arrived, because nothing else is written to it and nobody reads from it. Separate thread blocks copy its
// own part, so that the ring does not wait for it.
//
// Cost: ranks hops of latency; ranks - 1 parts leave each rank, over one link at a time. Every link carries
// one stream, which is faster for long messages than streams to and from all peers.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(allgather_ring, Parameters& with) {
  with.summary("All-gather of large messages around a ring.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  const bool inplace = with("inplace", false, "the input is the rank's part of the output");
  Program program({.name = "allgather_ring",
                   .collective = AllGather{.ranks = ranks, .chunk_factor = 1, .inplace = inplace},
                   .instances = with("instances", 4, "rings that split every part", {.min = 1})});
  const auto around = [&](int rank) { return (rank % ranks + ranks) % ranks; };

  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    BaseBuffer out = me.get_output_buffer(), next_out = Rank(program, around(rank + 1)).get_output_buffer();
    const Chunk mine = me.get_input_buffer()[0];
    if (!inplace) me.copy(out[rank], mine, ranks == 1 ? 0 : 1);
    if (ranks == 1) break;

    MemoryChannel right(program, around(rank + 1), rank);
    // With two ranks, the right and the left neighbour are the same, so one channel serves both ways.
    MemoryChannel left = ranks == 2 ? right : MemoryChannel(program, around(rank - 1), rank);
    left.signal(0, SyncType::both, /*relaxed=*/true);
    right.wait(0, SyncType::both, /*relaxed=*/true);
    for (int step = 0; step < ranks - 1; ++step) {
      const int part = around(rank - step);
      right.put(next_out[part], step == 0 ? mine : out[part], 0);
      right.signal(0);
      left.wait(0);
    }
  }
  return program;
}
