// All-reduce in two exchanges: chunk r of everybody goes to rank r, which sums it and sends the sum to all.
//
// The owner of a chunk sums in rank order, its own part in its turn (it goes through a packet slot like the
// others'), and all ranks get the owner's bits.
//
// No signal and no barrier, also between the two exchanges: each block sends, sums and unpacks its own share
// of every chunk. Peers touch nothing but scratch. A bank of packets is written again two launches later. A
// rank then writes its part to an owner whose sum it has received in the launch in between, and its sum to a
// peer whose part it has received there: either way the reader had ended the launch whose packets are
// overwritten.
//
// Cost: two one-way latencies; 2 (ranks - 1) / ranks S bytes leave each rank, as packets of twice the size.
// For messages too large for one exchange and too small for barriers to be cheap.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(allreduce_two_shot, Parameters& with) {
  with.summary("All-reduce of medium messages: parts to their owners as packets, sums back.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  const bool inplace = with("inplace", false, "the sum replaces the input");
  Program program({.name = "allreduce_two_shot",
                   .collective = AllReduce{.ranks = ranks, .chunk_factor = 1, .inplace = inplace},
                   .protocol = Protocol::LL,
                   .instances = with("instances", 4, "thread blocks that split every chunk", {.min = 1}),
                   .use_double_scratch_buffer = true});
  std::vector<Buffer> parts, sums;  // of each rank: parts of its chunk by sender, sums by owner
  for (int rank = 0; rank < ranks; ++rank) {
    parts.push_back({program, rank, ranks});
    sums.push_back({program, rank, ranks});
  }

  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    const BaseBuffer in = me.get_input_buffer(), out = inplace ? in : me.get_output_buffer();
    std::vector<MemoryChannel> to;  // the peers, each rank beginning with another one
    for (int i = 1; i < ranks; ++i) to.push_back({program, (rank + i) % ranks, rank});

    for (MemoryChannel& channel : to)
      channel.put_packets(parts[channel.dst_rank()][rank], in[channel.dst_rank()], 0);

    // ((x0 + x1) + x2) + ...
    std::vector<Chunk> others;
    for (int sender = 1; sender < ranks; ++sender) others.push_back(parts[rank][sender]);
    if (rank != 0) {
      me.copy_packets(parts[rank][rank], in[rank], 0);
      me.unpack_packets(out[rank], parts[rank][0], 0);
    } else if (ranks == 1 && !inplace) {
      me.copy(out[0], in[0], 0);
    }
    const Chunk first = rank == 0 ? in[0] : out[rank];
    if (ranks > 1) me.reduce(first, others, 0, out[rank], ReduceOp::sum, true);
    for (MemoryChannel& channel : to) channel.put_packets(sums[channel.dst_rank()][rank], out[rank], 0);

    for (int i = 1; i < ranks; ++i) {
      const int owner = (rank + ranks - i) % ranks;
      me.unpack_packets(out[owner], sums[rank][owner], 0);
    }
  }
  return program;
}
