// This all-gather sends encoded elements: every rank encodes its input once, and writes it to the scratch of
// every rank, which decodes it.
//
// A rank decodes its own part too, so all ranks get the same bits.
//
// Only rank r writes part r of any scratch, between two barriers. After the first one, all peers have been
// launched and have decoded the parts of the launch before. Its signals are relaxed, because nothing of this
// launch has to be visible yet. After the second one, all peers have written. No peer accesses another rank's
// input or output.
//
// Cost: two barriers; ranks - 1 inputs leave each rank, of one byte per element and a scale per block. Use it
// for long messages whose results need no more digits than the format has.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(allgather_quantised, Parameters& with) {
  with.summary(
      "All-gather of large messages, encoded on the way: 8 bits per element, and a scale per block.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  const Codec codec = codec_of(with);
  Program program({.name = "allgather_quantised",
                   .collective = AllGather{.ranks = ranks, .chunk_factor = 1},
                   .instances = with("instances", 16, "thread blocks that split every input", {.min = 1})});
  std::vector<Buffer> parts;  // by rank: parts by sender
  for (int rank = 0; rank < ranks; ++rank) parts.push_back({program, rank, ranks});

  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    std::vector<MemoryChannel> peers;
    for (int i = 1; i < ranks; ++i) peers.push_back({program, (rank + i) % ranks, rank});
    const auto barrier = [&](bool relaxed) {
      for (MemoryChannel& peer : peers) peer.signal(0, SyncType::both, relaxed);
      for (MemoryChannel& peer : peers) peer.wait(0, SyncType::both, relaxed);
    };

    const Chunk mine = parts[rank][rank].encoded(codec);
    me.copy(mine, me.get_input_buffer()[0], 0);
    barrier(/*relaxed=*/true);
    for (MemoryChannel& peer : peers) peer.put(parts[peer.dst_rank()][rank].encoded(codec), mine, 0);
    barrier(/*relaxed=*/false);
    for (int sender = 0; sender < ranks; ++sender)
      me.copy(me.get_output_buffer()[sender], parts[rank][sender].encoded(codec), 0);
  }
  return program;
}
