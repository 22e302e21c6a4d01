// This all-reduce adds in the order of the ranks. Every rank sends part p to rank p's scratch. There one
// operation adds the parts in the order 0, 1, ..., ranks - 1 and rounds once. Then the sum comes back.
//
// So the bits of a sum depend only on its addends, and not on its position, the size of the message, or the
// owner of the part. allreduce_all_pairs reads the parts in place, but a reduction that reads from peers
// begins with its own rank's part.
//
// After the first barrier, all peers have been launched: the previous launch no longer reads their scratch,
// and their outputs may be written. Its signals are relaxed, because nothing of this launch has to be visible
// yet. A rank's own part stays in place. After the second barrier all parts have arrived, after the third all
// sums. The sum may replace the input: only the rank itself reads a part of its input, before it signals that
// it has sent it, and the owner writes there after that.
//
// Cost: three barriers; 2 (ranks - 1) / ranks messages leave each rank, all written, and (ranks - 1) / ranks
// messages are written and read once more within each.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(allreduce_staged, Parameters& with) {
  with.summary("All-reduce of large messages in the order of the ranks: parts to their owners, sums back.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  const bool inplace = with("inplace", false, "the sum replaces the input");
  Program program({.name = "allreduce_staged",
                   .collective = AllReduce{.ranks = ranks, .chunk_factor = 1, .inplace = inplace},
                   .instances = with("instances", 4, "thread blocks that split every chunk", {.min = 1})});
  std::vector<Buffer> slots;  // by rank, one slot per sender
  for (int rank = 0; rank < ranks; ++rank) slots.push_back({program, rank, ranks});
  const auto output = [&](int rank) {
    return inplace ? program.rank(rank).get_input_buffer() : program.rank(rank).get_output_buffer();
  };

  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    const BaseBuffer in = me.get_input_buffer();
    const Chunk sum = output(rank)[rank];
    if (ranks == 1) {
      if (!inplace) me.copy(sum, in[0], 0);
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
    for (MemoryChannel& peer : peers) peer.put(output(peer.dst_rank())[rank], sum, 0);
    barrier(/*relaxed=*/false);
  }
  return program;
}
