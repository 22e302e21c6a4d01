// This all-reduce needs no intermediate copies: rank r reads chunk r from all peers, and writes the sum to
// all peers.
//
// The owner adds its own part first and then its peers' parts in rank order, beginning with the next rank: r,
// r+1, ..., r-1. The sum is made once, so all ranks get the same bits. The reductions are fused, up to eight
// peers in one, and each is rounded once. This order spreads the reads: no two owners read from one rank at a
// time.
//
// Only rank r accesses chunk r of any rank, between two barriers. After the first, all peers have been
// launched: inputs are complete and outputs may be written. Its signals are relaxed, because nothing of this
// launch has to be visible yet. After the second, all peers have finished, so a rank may return. Signals of
// one launch cannot satisfy the next launch's barrier, because every signal has its wait. Since only the
// owner accesses a chunk, the sum may replace the input.
//
// Cost: two barriers; 2 (ranks - 1) / ranks messages go over each rank's links, half read and half written.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(allreduce_all_pairs, Parameters& with) {
  with.summary("All-reduce of large messages: owners read from all and write to all, no copies.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  const bool inplace = with("inplace", false, "the sum replaces the input");
  Program program({.name = "allreduce_all_pairs",
                   .collective = AllReduce{.ranks = ranks, .chunk_factor = 1, .inplace = inplace},
                   .instances = with("instances", 4, "thread blocks that split every chunk", {.min = 1})});
  const auto input = [&](int rank) { return program.rank(rank).get_input_buffer(); };
  const auto output = [&](int rank) {
    return inplace ? input(rank) : program.rank(rank).get_output_buffer();
  };

  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    std::vector<MemoryChannel> peers;
    for (int i = 1; i < ranks; ++i) peers.push_back({program, (rank + i) % ranks, rank});
    const auto barrier = [&](bool relaxed) {
      for (MemoryChannel& peer : peers) peer.signal(0, SyncType::both, relaxed);
      for (MemoryChannel& peer : peers) peer.wait(0, SyncType::both, relaxed);
    };

    const Chunk mine = input(rank)[rank], sum = output(rank)[rank];
    if (ranks == 1 && !inplace) me.copy(sum, mine, 0);
    barrier(/*relaxed=*/true);
    for (MemoryChannel& peer : peers) {
      const bool first = &peer == &peers.front();
      peer.reduce(first ? mine : sum, {input(peer.dst_rank())[rank]}, 0, sum);
    }
    for (MemoryChannel& peer : peers) peer.put(output(peer.dst_rank())[rank], sum, 0);
    barrier(/*relaxed=*/false);
  }
  return program;
}
