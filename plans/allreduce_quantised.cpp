// This all-reduce sends encoded elements: each rank receives one part of every rank's input, encoded, sums it
// and sends the sum to all, encoded.
//
// The owner of a part adds its own addend, which nobody encodes, and then the decoded ones of its peers in
// rank order, beginning with the next rank: r, r+1, ..., r-1, in one operation that rounds once. The encoded
// sum is made once, and its owner decodes it as its peers do, so all ranks get the same bits. An addend is
// encoded at most twice.
//
// A rank's second signal to a peer says that it has added up that peer's addends, so the peer may overwrite
// them in the next launch. Its first signal in the next launch says that it has decoded all sums, so the
// peers may overwrite these. No other memory is accessed by peers.
//
// Cost: two exchanges; 2 (ranks - 1) / ranks messages leave each rank, of one byte per element and a scale
// per block. Use it for long messages whose results need no more digits than the format has.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(allreduce_quantised, Parameters& with) {
  with.summary(
      "All-reduce of large messages, encoded on the way: 8 bits per element, and a scale per block.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  const bool inplace = with("inplace", false, "the sum replaces the input");
  const Codec codec = codec_of(with);
  Program program({.name = "allreduce_quantised",
                   .collective = AllReduce{.ranks = ranks, .chunk_factor = 1, .inplace = inplace},
                   .instances = with("instances", 16, "thread blocks that split every chunk", {.min = 1})});
  std::vector<Buffer> parts, sums;  // by rank: parts by sender, sums by owner
  for (int rank = 0; rank < ranks; ++rank) {
    parts.push_back({program, rank, ranks});
    sums.push_back({program, rank, ranks});
  }

  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    const BaseBuffer in = me.get_input_buffer(), out = inplace ? in : me.get_output_buffer();
    if (ranks == 1) {
      if (!inplace) me.copy(out[0], in[0], 0);
      continue;
    }
    std::vector<MemoryChannel> peers;
    for (int i = 1; i < ranks; ++i) peers.push_back({program, (rank + i) % ranks, rank});
    const auto barrier = [&] {
      for (MemoryChannel& peer : peers) peer.signal(0);
      for (MemoryChannel& peer : peers) peer.wait(0);
    };

    std::vector<Chunk> addends;
    for (MemoryChannel& peer : peers) {
      const int64_t owner = peer.dst_rank();
      peer.put(parts[owner][rank].encoded(codec), in[owner], 0);
      addends.push_back(parts[rank][owner].encoded(codec));
    }
    barrier();
    const Chunk sum = sums[rank][rank].encoded(codec);
    me.reduce(in[rank], addends, 0, sum);
    for (MemoryChannel& peer : peers) peer.put(sums[peer.dst_rank()][rank].encoded(codec), sum, 0);
    barrier();
    for (int owner = 0; owner < ranks; ++owner) me.copy(out[owner], sums[rank][owner].encoded(codec), 0);
  }
  return program;
}
