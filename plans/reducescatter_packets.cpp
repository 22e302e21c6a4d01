// This reduce-scatter is one exchange of packets: rank p receives and sums part p of every input.
//
// A rank adds its own part first and then its peers' in rank order, beginning with the next rank: r, r+1,
// ..., r-1, in one operation that rounds once. Only one rank sums a part, so each part may have a different
// order. With rank_order it packs its own part as well, and adds 0, 1, ..., ranks - 1. Then the bits of a sum
// depend only on its addends, and not on its owner.
//
// It needs no signal and no barrier, because packets show their own arrival and peers access only scratch. A
// bank of packets is written again two launches later. By then its sender has received a packet of the launch
// in between from every peer, so each peer has ended the launch whose packets are overwritten.
//
// Cost: one one-way latency; (ranks - 1) / ranks messages leave each rank, as packets of twice the size. Use
// it for small messages.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(reducescatter_packets, Parameters& with) {
  with.summary("Reduce-scatter of small messages: one exchange of packets.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  const bool rank_order = with("rank_order", false, "the order of addends is the same for all elements");
  Program program({.name = "reducescatter_packets",
                   .collective = ReduceScatter{.ranks = ranks, .chunk_factor = 1},
                   .protocol = Protocol::LL,
                   .instances = with("instances", 1, "thread blocks that split every part", {.min = 1}),
                   .use_double_scratch_buffer = true});
  std::vector<Buffer> slots;  // by rank, one slot per sender
  for (int rank = 0; rank < ranks; ++rank) slots.push_back({program, rank, ranks});

  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    const BaseBuffer in = me.get_input_buffer();
    const Chunk sum = me.get_output_buffer()[0];
    std::vector<Chunk> others;
    for (int i = 1; i < ranks; ++i) {
      const int peer = (rank + i) % ranks;  // no two ranks begin with the same peer
      MemoryChannel(program, peer, rank).put_packets(slots[peer][rank], in[peer], 0);
      others.push_back(slots[rank][peer]);
    }
    if (ranks == 1) {
      me.copy(sum, in[0], 0);
    } else if (rank_order) {
      me.copy_packets(slots[rank][rank], in[rank], 0);
      std::vector<Chunk> all;
      for (int sender = 0; sender < ranks; ++sender) all.push_back(slots[rank][sender]);
      me.combine_packets(sum, all, 0);
    } else {
      me.reduce(in[rank], others, 0, sum, ReduceOp::sum, true);
    }
  }
  return program;
}
