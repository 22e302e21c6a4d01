// This reduce adds in the order of the ranks. Every rank sends part p to rank p's scratch. There one
// operation adds the parts in the order 0, 1, ..., ranks - 1, rounds once, and stores the sum into the root's
// output.
//
// So, as in allreduce_staged, the bits of a sum depend only on its addends, and not on the root, its position
// or the size of the message.
//
// After the first barrier all peers have been launched, so the previous launch no longer reads their scratch,
// and the root's output may be written. Its signals are relaxed, because nothing of this launch has to be
// visible yet. After the second barrier all parts have arrived. The last signals tell the root that all sums
// have arrived. The other ranks read only their own input and scratch, so they may return when they have
// sent.
//
// Cost: three one-way latencies; (ranks - 1) / ranks messages leave each rank, are written and read once more
// at their owners, and as much is written to the root.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(reduce_staged, Parameters& with) {
  with.summary("Reduce of large messages in the order of the ranks: parts to their owners.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  const int root = with("root", 0, "the rank that receives", {.min = 0, .max = ranks - 1});
  Program program({.name = "reduce_staged",
                   .collective = Reduce{.ranks = ranks, .root = root, .chunk_factor = ranks},
                   .instances = with("instances", 4, "thread blocks that split every part", {.min = 1})});
  std::vector<Buffer> slots;  // by rank: one slot per sender, and one for the sum
  for (int rank = 0; rank < ranks; ++rank) slots.push_back({program, rank, ranks + 1});

  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    const BaseBuffer in = me.get_input_buffer();
    const Chunk sum = rank == root ? me.get_output_buffer()[rank] : slots[rank][ranks];
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
    for (MemoryChannel& peer : peers) {
      if (rank == root) {
        peer.wait(0);
      } else if (peer.dst_rank() == root) {
        peer.put(program.rank(root).get_output_buffer()[rank], sum, 0);
        peer.signal(0);
      }
    }
  }
  return program;
}
