// This all-to-all works in one exchange of packets: every rank sends part p of its input to rank p.
//
// A rank also sends its own part to itself. Then one operation unpacks all slots. This costs less than a copy
// and an operation for each slot. With `copies` it does the latter. Then a thread block unpacks into what it
// has sent itself, so that the same plan, with a synchronisation between the two, is right in place too.
//
// It needs no signal and no barrier, because packets show their own arrival and peers access only scratch. A
// bank of packets is written again two launches later. By then its sender has received a packet of the launch
// in between from every peer, so each peer has ended the launch whose packets are overwritten. It does not
// matter which block unpacks a packet.
//
// Cost: one one-way latency; (ranks - 1) / ranks messages leave each rank, as packets of twice the size. Use
// it for small messages.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(alltoall_packets, Parameters& with) {
  with.summary("All-to-all of small messages: one exchange of packets.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  const bool copies = with("copies", false, "copies the own part, which can be made right in place too");
  Program program({.name = "alltoall_packets",
                   .collective = AllToAll{.ranks = ranks, .chunk_factor = 1},
                   .protocol = Protocol::LL,
                   .instances = with("instances", 1, "thread blocks that split every part", {.min = 1}),
                   .use_double_scratch_buffer = true});
  std::vector<Buffer> slots;  // by rank, one slot per sender
  for (int rank = 0; rank < ranks; ++rank) slots.push_back({program, rank, ranks});

  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    const BaseBuffer in = me.get_input_buffer(), out = me.get_output_buffer();
    for (int i = 1; i < ranks; ++i) {
      const int peer = (rank + i) % ranks;  // no two ranks begin with the same peer
      MemoryChannel(program, peer, rank).put_packets(slots[peer][rank], in[peer], 0);
    }
    if (ranks == 1 || copies) {
      me.copy(out[rank], in[rank], 0);
      for (int i = 1; i < ranks; ++i) {
        const int peer = (rank + i) % ranks;
        me.unpack_packets(out[peer], slots[rank][peer], 0);
      }
    } else {
      me.copy_packets(slots[rank][rank], in[rank], 0);
      me.unpack_packets(out.slice(0, ranks), slots[rank].slice(0, ranks), 0);
    }
  }
  return program;
}
