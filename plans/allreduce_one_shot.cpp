// This all-reduce works in one exchange: every rank sends its whole input to every peer and adds up what it
// receives.
//
// Each rank has one packet slot per rank, including itself, and sums all slots in rank order in one
// operation. The order is the same on all ranks, so all get the same bits. For this reason a rank sends
// its input to itself as well: its data must be added in the same order.
//
// It needs no signal and no barrier. Packets show their own arrival, and peers access only scratch, so
// input and output may be one memory and a rank may return at once. The next launch writes the other bank
// of packets. The launch after it writes this bank again. By then its sender has received a packet of the
// launch in between from every peer, so each peer has ended this launch and no longer reads this bank.
//
// Cost: one one-way latency; ranks - 1 messages leave each rank, as packets of twice the size. Use it
// for small messages.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(allreduce_one_shot, Parameters& with) {
  with.summary("All-reduce of small messages: one exchange of packets, summed everywhere.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  const bool inplace = with("inplace", false, "the sum replaces the input");
  Program program({.name = "allreduce_one_shot",
                   .collective = AllReduce{.ranks = ranks, .chunk_factor = 1, .inplace = inplace},
                   .protocol = Protocol::LL,
                   .instances = with("instances", 1, "thread blocks that split the message", {.min = 1}),
                   .use_double_scratch_buffer = true});
  std::vector<Buffer> slots;  // by rank, one slot per sender
  for (int rank = 0; rank < ranks; ++rank) slots.push_back({program, rank, ranks * ranks});
  const auto slot = [&](int owner, int sender) {
    return slots[owner].slice(sender * ranks, (sender + 1) * ranks);
  };

  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    const Chunk mine = me.get_input_buffer().slice(0, ranks);
    const Chunk sum = inplace ? mine : me.get_output_buffer().slice(0, ranks);
    if (ranks == 1) {
      if (!inplace) me.copy(sum, mine, 0);
      break;
    }
    for (int i = 1; i < ranks; ++i) {
      const int peer = (rank + i) % ranks;  // no two ranks begin with the same peer
      MemoryChannel(program, peer, rank).put_packets(slot(peer, rank), mine, 0);
    }
    me.copy_packets(slot(rank, rank), mine, 0);

    std::vector<Chunk> all;  // ((x0 + x1) + x2) + ...
    for (int sender = 0; sender < ranks; ++sender) all.push_back(slot(rank, sender));
    me.combine_packets(sum, all, 0);
  }
  return program;
}
