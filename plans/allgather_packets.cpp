// This all-gather works in one exchange of packets: every rank sends its input to every peer.
//
// If it does not gather in place, a rank also sends its input to itself. Then one operation unpacks all
// slots. This costs less than a copy and two operations for the slots on both sides of the rank's own. With
// `copies` it copies its input instead. The same plan is then right in place too, where the copy does
// nothing.
//
// It needs no signal and no barrier, because packets show their own arrival and peers access only scratch. A
// bank of packets is written again two launches later. By then its sender has received a packet of the launch
// in between from every peer, so each peer has ended the launch whose packets are overwritten. It does not
// matter which block unpacks a packet.
//
// Cost: one one-way latency; ranks - 1 inputs leave each rank, as packets of twice the size. Use it for small
// messages.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(allgather_packets, Parameters& with) {
  with.summary("All-gather of small messages: one exchange of packets.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  const bool inplace = with("inplace", false, "the input is the rank's part of the output");
  const bool copies = with("copies", false, "copies the own part, which is right in place too");
  Program program({.name = "allgather_packets",
                   .collective = AllGather{.ranks = ranks, .chunk_factor = 1, .inplace = inplace},
                   .protocol = Protocol::LL,
                   .instances = with("instances", 1, "thread blocks that split every input", {.min = 1}),
                   .use_double_scratch_buffer = true});
  std::vector<Buffer> slots;  // by rank, one slot per sender
  for (int rank = 0; rank < ranks; ++rank) slots.push_back({program, rank, ranks});

  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    const Chunk mine = me.get_input_buffer()[0];
    const BaseBuffer out = me.get_output_buffer();
    for (int i = 1; i < ranks; ++i) {
      const int peer = (rank + i) % ranks;  // no two ranks begin with the same peer
      MemoryChannel(program, peer, rank).put_packets(slots[peer][rank], mine, 0);
    }
    const auto unpack = [&](int first, int end) {
      if (first < end) me.unpack_packets(out.slice(first, end), slots[rank].slice(first, end), 0);
    };
    if (inplace) {
      unpack(0, rank);
      unpack(rank + 1, ranks);
    } else if (ranks == 1 || copies) {
      me.copy(out[rank], mine, 0);
      unpack(0, rank);
      unpack(rank + 1, ranks);
    } else {
      me.copy_packets(slots[rank][rank], mine, 0);
      unpack(0, ranks);
    }
  }
  return program;
}
