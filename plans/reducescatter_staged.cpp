// Reduce-scatter in the order of the ranks: everybody's part p goes to rank p's scratch and is summed there
// in one operation, 0, 1, ..., ranks - 1, that rounds once.
//
// So the bits of a sum depend on its addends alone, as those of allreduce_staged: not on who owns it, where
// in the message it stands or how long that is.
//
// Behind the first barrier all peers have been launched, so their scratch has been read for the last time by
// the launch before. Behind the second all parts have arrived. A rank reads its input and its own scratch
// alone, so it may return when it has summed.
//
// Cost: two barriers; (ranks - 1) / ranks S bytes leave each rank, and are written and read once more at
// their owners.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(reducescatter_staged, Parameters& with) {
  with.summary("Reduce-scatter of large messages in the order of the ranks: parts to their owners.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  Program program({.name = "reducescatter_staged",
                   .collective = ReduceScatter{.ranks = ranks, .chunk_factor = 1},
                   .instances = with("instances", 4, "thread blocks that split every chunk", {.min = 1})});
  std::vector<Buffer> slots;  // of each rank, one a sender
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
    const auto barrier = [&] {
      for (MemoryChannel& peer : peers) peer.signal(0);
      for (MemoryChannel& peer : peers) peer.wait(0);
    };

    barrier();
    for (MemoryChannel& peer : peers) peer.put(slots[peer.dst_rank()][rank], in[peer.dst_rank()], 0);
    barrier();
    std::vector<Chunk> addends;
    for (int sender = 0; sender < ranks; ++sender)
      addends.push_back(sender == rank ? in[rank] : slots[rank][sender]);
    const Chunk first = addends.front();
    addends.erase(addends.begin());
    me.reduce(first, addends, 0, sum);
  }
  return program;
}
