// This reduce-scatter adds in the order of the ranks. Every rank sends part p to rank p's scratch. There one
// operation adds the parts in the order 0, 1, ..., ranks - 1 and rounds once.
//
// So, as in allreduce_staged, the bits of a sum depend only on its addends, and not on its owner, its
// position or the size of the message.
//
// After the first barrier all peers have been launched, so the previous launch no longer reads their scratch.
// Its signals are relaxed, because nothing of this launch has to be visible yet. After the second barrier all
// parts have arrived. A rank reads only its own input and scratch, so it may return when it has summed.
//
// Cost: two barriers; (ranks - 1) / ranks messages leave each rank, and are written and read once more at
// their owners.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(reducescatter_staged, Parameters& with) {
  with.summary("Reduce-scatter of large messages in the order of the ranks: parts to their owners.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  Program program({.name = "reducescatter_staged",
                   .collective = ReduceScatter{.ranks = ranks, .chunk_factor = 1},
                   .instances = with("instances", 4, "thread blocks that split every chunk", {.min = 1})});
  std::vector<Buffer> slots;  // by rank, one slot per sender
  for (int rank = 0; rank < ranks; ++rank) slots.push_back({program, rank, ranks});

  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    const BaseBuffer in = me.get_input_buffer();
    const Chunk sum = me.get_output_buffer()[0];
    if (ranks == 1) {
      me.copy(sum, in[0], 0);
      continue;
    }
    std::vector<MemoryChannel> peers;
    for (int i = 1; i < ranks; ++i) peers.push_back({program, (rank + i) % ranks, rank});
    const auto barrier = [&](bool relaxed) {
      for (MemoryChannel& peer : peers) peer.signal(0, SyncType::both, relaxed);
      for (MemoryChannel& peer : peers) peer.wait(0, SyncType::both, relaxed);
    };

    barrier(/*relaxed=*/true);
    for (MemoryChannel& peer : peers) peer.put(slots[peer.dst_rank()][rank], in[peer.dst_rank()], 0);
    barrier(/*relaxed=*/false);
    std::vector<Chunk> addends;
    for (int sender = 0; sender < ranks; ++sender)
      addends.push_back(sender == rank ? in[rank] : slots[rank][sender]);
    const Chunk first = addends.front();
    addends.erase(addends.begin());
    me.reduce(first, addends, 0, sum);
  }
  return program;
}
