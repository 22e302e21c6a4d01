// This reduce-scatter uses direct loads: rank r reads chunk r of every peer's input and sums.
//
// A rank adds its own part first and then its peers' in rank order, beginning with the next rank: r, r+1,
// ..., r-1, in one operation that rounds once. This order spreads the reads: no two ranks read from one peer
// at the same time.
//
// After the first barrier all peers have been launched, so their inputs are complete. After the second
// barrier all peers have read what they need, so a rank may return and its caller may change the input. The
// signals of both are relaxed, because no rank reads what another one has written in this launch. Only the
// rank itself writes its output.
//
// Cost: two barriers; (ranks - 1) / ranks messages are read over each rank's links.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(reducescatter_direct, Parameters& with) {
  with.summary("Reduce-scatter: every rank reads its part from all and sums.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  Program program({.name = "reducescatter_direct",
                   .collective = ReduceScatter{.ranks = ranks, .chunk_factor = 1},
                   .instances = with("instances", 4, "thread blocks that split every chunk", {.min = 1})});

  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    std::vector<MemoryChannel> peers;
    for (int i = 1; i < ranks; ++i) peers.push_back({program, (rank + i) % ranks, rank});
    const auto barrier = [&] {
      for (MemoryChannel& peer : peers) peer.signal(0, SyncType::both, /*relaxed=*/true);
      for (MemoryChannel& peer : peers) peer.wait(0, SyncType::both, /*relaxed=*/true);
    };

    const Chunk mine = me.get_input_buffer()[rank], sum = me.get_output_buffer()[0];
    if (ranks == 1) me.copy(sum, mine, 0);
    barrier();
    for (MemoryChannel& peer : peers) {
      const bool first = &peer == &peers.front();
      peer.reduce(first ? mine : sum, {program.rank(peer.dst_rank()).get_input_buffer()[rank]}, 0, sum);
    }
    barrier();
  }
  return program;
}
