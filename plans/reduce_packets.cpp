// This reduce is one exchange of packets: every rank sends its input to the root, which sums.
//
// The root adds its own input first and then its peers' in rank order, beginning with the next rank, in one
// operation that rounds once. With rank_order it packs its own input as well, and adds 0, 1, ..., ranks - 1.
// Then the bits of a sum depend only on its addends, and not on the root.
//
// It needs no signal and no barrier. Packets show their own arrival, and a bank of packets is written again
// two launches later, when the root must have read it. So the root sends its input to the other ranks too,
// although they do not need it. A rank that has received it knows that the root's launch has begun, and so
// that all earlier launches of the root have ended. This is faster than a signal of the root, which the
// root's threads would wait for.
//
// Cost: one one-way latency; ranks - 1 messages reach the root and leave it, as packets of twice the size.
// Use it for small messages.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(reduce_packets, Parameters& with) {
  with.summary("Reduce of small messages: one exchange of packets.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  const int root = with("root", 0, "the rank that receives", {.min = 0, .max = ranks - 1});
  const bool rank_order = with("rank_order", false, "the order of addends does not depend on the root");
  Program program({.name = "reduce_packets",
                   .collective = Reduce{.ranks = ranks, .root = root, .chunk_factor = 1},
                   .protocol = Protocol::LL,
                   .instances = with("instances", 1, "thread blocks that split the message", {.min = 1}),
                   .use_double_scratch_buffer = true});
  Rank receiver(program, root);
  const Chunk mine = receiver.get_input_buffer()[0], sum = receiver.get_output_buffer()[0];
  const Buffer slots(program, root, ranks);  // one slot per sender

  std::vector<Chunk> others;
  for (int i = 1; i < ranks; ++i) {
    const int rank = (root + i) % ranks;
    const Rank sender(program, rank);
    const Buffer scratch(program, rank, 2);  // the root's packets, and what they hold
    MemoryChannel(program, rank, root).put_packets(scratch[0], mine, 0);
    MemoryChannel(program, root, rank).put_packets(slots[rank], sender.get_input_buffer()[0], 0);
    sender.unpack_packets(scratch[1], scratch[0], 0);
    others.push_back(slots[rank]);
  }
  if (ranks == 1) {
    receiver.copy(sum, mine, 0);
  } else if (rank_order) {
    receiver.copy_packets(slots[root], mine, 0);
    std::vector<Chunk> all;
    for (int rank = 0; rank < ranks; ++rank) all.push_back(slots[rank]);
    receiver.combine_packets(sum, all, 0);
  } else {
    receiver.reduce(mine, others, 0, sum, ReduceOp::sum, true);
  }
  return program;
}
