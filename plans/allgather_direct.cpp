// This all-gather uses direct stores: every rank writes its input into every rank's output.
//
// Only rank r writes part r of any output, between two barriers. After the first one, all peers have been
// launched, so their outputs may be written. Its signals are relaxed, because nothing of this launch has to
// be visible yet. After the second one, all peers have written, so the output is complete and a rank may
// return. No peer reads another rank's memory.
//
// Separate thread blocks copy the rank's own part, unless it is already in place. In the blocks that send,
// the copy of a large message would delay the sends.
//
// Cost: two barriers; ranks - 1 inputs leave each rank. Each rank begins with a different peer, so that no
// two write to one rank at the same time.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(allgather_direct, Parameters& with) {
  with.summary("All-gather of large messages: everybody writes to everybody.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  const bool inplace = with("inplace", false, "the input is the rank's part of the output");
  Program program({.name = "allgather_direct",
                   .collective = AllGather{.ranks = ranks, .chunk_factor = 1, .inplace = inplace},
                   .instances = with("instances", 4, "thread blocks that split every input", {.min = 1})});

  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    std::vector<MemoryChannel> peers;
    for (int i = 1; i < ranks; ++i) peers.push_back({program, (rank + i) % ranks, rank});
    const auto barrier = [&](bool relaxed) {
      for (MemoryChannel& peer : peers) peer.signal(0, SyncType::both, relaxed);
      for (MemoryChannel& peer : peers) peer.wait(0, SyncType::both, relaxed);
    };

    const Chunk mine = me.get_input_buffer()[0];
    barrier(/*relaxed=*/true);
    for (MemoryChannel& peer : peers) {
      peer.put(Rank(program, peer.dst_rank()).get_output_buffer()[rank], mine, 0);
    }
    if (!inplace) me.copy(me.get_output_buffer()[rank], mine, 1);
    barrier(/*relaxed=*/false);
  }
  return program;
}
