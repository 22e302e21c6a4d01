// This all-reduce works in two exchanges: each rank receives one part of every rank's input, sums it and
// sends the sum to all.
//
// The owner of a part adds its own addend first and then its peers' in rank order, beginning with the next
// rank: r, r+1, ..., r-1, in one operation that rounds once. The sum is made once, so all ranks get the
// owner's bits. With rank_order it packs its own part as well, and adds 0, 1, ..., ranks - 1. Then the bits
// of a sum depend only on its addends, and not on its owner.
//
// Each thread block works alone on a share of the message, from the first exchange to the end, and cuts it
// into one part per rank. Blocks never wait for each other.
//
// It needs no signal and no barrier, not even between the two exchanges. Peers access only scratch. A bank of
// packets is written again two launches later. By then a rank that writes its part to an owner has received
// that owner's sum of the launch in between, and a rank that writes its sum to a peer has received that
// peer's part. In both cases the reader has ended the launch whose packets are overwritten.
//
// Cost: two one-way latencies; 2 (ranks - 1) / ranks messages leave each rank, as packets of twice the size.
// Use it for messages too large for one exchange and too small for barriers to be cheap.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(allreduce_two_shot, Parameters& with) {
  with.summary("All-reduce of medium messages: parts to their owners as packets, sums back.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  const bool inplace = with("inplace", false, "the sum replaces the input");
  const bool rank_order = with("rank_order", false, "the order of addends is the same for all elements");
  const int blocks = with("instances", 4, "thread blocks that split the message", {.min = 1});
  Program program({.name = "allreduce_two_shot",
                   .collective = AllReduce{.ranks = ranks, .chunk_factor = blocks, .inplace = inplace},
                   .protocol = Protocol::LL,
                   .use_double_scratch_buffer = true});
  std::vector<Buffer> parts, sums;                    // by rank and block: parts by sender, sums by owner
  std::vector<std::vector<MemoryChannel>> to(ranks);  // the peers, each rank beginning with a different one
  for (int rank = 0; rank < ranks; ++rank) {
    parts.push_back({program, rank, blocks * ranks});
    sums.push_back({program, rank, blocks * ranks});
    for (int i = 1; i < ranks; ++i) to[rank].push_back({program, (rank + i) % ranks, rank});
  }

  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    const BaseBuffer in = me.get_input_buffer(), out = inplace ? in : me.get_output_buffer();
    for (int block = 0; block < blocks; ++block) {
      const int share = block * ranks;  // its first chunk
      if (ranks == 1) {
        if (!inplace) me.copy(out[share], in[share], block);
        continue;
      }
      for (const MemoryChannel& peer : to[rank]) {
        const int64_t owner = peer.dst_rank();
        peer.put_packets(parts[owner][share + rank], in[share + owner], block);
      }

      const Chunk mine = in[share + rank], sum = out[share + rank];
      std::vector<Chunk> addends;
      if (rank_order) {
        me.copy_packets(parts[rank][share + rank], mine, block);
        for (int sender = 0; sender < ranks; ++sender) addends.push_back(parts[rank][share + sender]);
        me.combine_packets(sum, addends, block);
      } else {
        for (const MemoryChannel& peer : to[rank]) addends.push_back(parts[rank][share + peer.dst_rank()]);
        me.reduce(mine, addends, block, sum, ReduceOp::sum, true);
      }
      for (const MemoryChannel& peer : to[rank]) {
        peer.put_packets(sums[peer.dst_rank()][share + rank], sum, block);
      }

      for (const MemoryChannel& peer : to[rank]) {
        const int64_t owner = peer.dst_rank();
        me.unpack_packets(out[share + owner], sums[rank][share + owner], block);
      }
    }
  }
  return program;
}
