// All-gather in one exchange of packets: every rank sends its input to every peer.
//
// No signal and no barrier: packets carry their own arrival, and peers touch nothing but scratch. A bank of
// packets is written again two launches later, by a sender that has received a packet of the launch in
// between from every peer: each has ended the launch whose packets are overwritten.
//
// Cost: one one-way latency; ranks - 1 inputs leave each rank, as packets of twice the size. For small
// messages.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(allgather_packets, Parameters& with) {
  with.summary("All-gather of small messages: one exchange of packets.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  Program program({.name = "allgather_packets",
                   .collective = AllGather{.ranks = ranks, .chunk_factor = 1},
                   .protocol = Protocol::LL,
                   .instances = with("instances", 1, "thread blocks that split every input", {.min = 1}),
                   .use_double_scratch_buffer = true});
  std::vector<Buffer> slots;  // of each rank, one a sender
  for (int rank = 0; rank < ranks; ++rank) slots.push_back({program, rank, ranks});

  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    const Chunk mine = me.get_input_buffer()[0];
    for (int i = 1; i < ranks; ++i) {
      const int peer = (rank + i) % ranks;
      MemoryChannel(program, peer, rank).put_packets(slots[peer][rank], mine, 0);
    }
    me.copy(me.get_output_buffer()[rank], mine, 0);
    for (int i = 1; i < ranks; ++i) {
      const int sender = (rank + ranks - i) % ranks;
      me.unpack_packets(me.get_output_buffer()[sender], slots[rank][sender], 0);
    }
  }
  return program;
}
