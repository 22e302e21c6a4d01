// This reduce uses direct loads: rank r reads part r of every peer's input, sums, and stores the sum into the
// root's output.
//
// A rank adds its own part first and then its peers' in rank order, beginning with the next rank: r, r+1,
// ..., r-1, in one operation that rounds once. This order spreads the reads: no two ranks read from one peer
// at the same time. The operation that sums on another rank than the root also sends, and keeps the sum in
// scratch, where nobody reads it.
//
// After the first barrier all peers have been launched, so their inputs are complete and the root's output
// may be written. Its signals are relaxed, because nothing of this launch has to be visible yet. After the
// second barrier all peers have read what they need and the root has all parts, so a rank may return and its
// caller may change the input.
//
// Cost: two barriers; (ranks - 1) / ranks messages are read over each rank's links, and as much is written to
// the root.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(reduce_direct, Parameters& with) {
  with.summary("Reduce: every rank reads its part from all, sums and writes to the root.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  const int root = with("root", 0, "the rank that receives", {.min = 0, .max = ranks - 1});
  Program program({.name = "reduce_direct",
                   .collective = Reduce{.ranks = ranks, .root = root, .chunk_factor = ranks},
                   .instances = with("instances", 4, "thread blocks that split every part", {.min = 1})});

  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    std::vector<MemoryChannel> peers;
    for (int i = 1; i < ranks; ++i) peers.push_back({program, (rank + i) % ranks, rank});
    const auto barrier = [&](bool relaxed) {
      for (MemoryChannel& peer : peers) peer.signal(0, SyncType::both, relaxed);
      for (MemoryChannel& peer : peers) peer.wait(0, SyncType::both, relaxed);
    };

    const Chunk mine = me.get_input_buffer()[rank];
    const Chunk sum = rank == root ? me.get_output_buffer()[rank] : Buffer(program, rank, 1)[0];
    if (ranks == 1) me.copy(sum, mine, 0);
    barrier(/*relaxed=*/true);
    for (MemoryChannel& peer : peers) {
      const bool first = &peer == &peers.front();
      peer.reduce(first ? mine : sum, {program.rank(peer.dst_rank()).get_input_buffer()[rank]}, 0, sum);
    }
    for (MemoryChannel& peer : peers) {
      if (peer.dst_rank() == root) peer.put(program.rank(root).get_output_buffer()[rank], sum, 0);
    }
    barrier(/*relaxed=*/false);
  }
  return program;
}
