// This all-to-all uses direct stores: rank r writes chunk p of its input into chunk r of rank p's output.
//
// Only rank r writes chunk r of any output, between two barriers. After the first one, all peers have been
// launched, so their outputs may be written. Its signals are relaxed, because nothing of this launch has to
// be visible yet. After the second one, all peers have written, so the output is complete and a rank may
// return. No peer reads another rank's memory.
//
// Separate thread blocks copy the rank's own part. In the blocks that send, the copy of a large message would
// delay the sends.
//
// Cost: two barriers; (ranks - 1) / ranks messages leave each rank. Each rank begins with a different peer,
// so that no two write to one rank at the same time.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(alltoall_direct, Parameters& with) {
  with.summary("All-to-all: everybody writes to everybody.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  Program program({.name = "alltoall_direct",
                   .collective = AllToAll{.ranks = ranks, .chunk_factor = 1},
                   .instances = with("instances", 4, "thread blocks that split every chunk", {.min = 1})});

  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    BaseBuffer in = me.get_input_buffer();
    std::vector<MemoryChannel> peers;
    for (int i = 1; i < ranks; ++i) peers.push_back({program, (rank + i) % ranks, rank});
    const auto barrier = [&](bool relaxed) {
      for (MemoryChannel& peer : peers) peer.signal(0, SyncType::both, relaxed);
      for (MemoryChannel& peer : peers) peer.wait(0, SyncType::both, relaxed);
    };

    barrier(/*relaxed=*/true);
    for (MemoryChannel& peer : peers) {
      peer.put(Rank(program, peer.dst_rank()).get_output_buffer()[rank], in[peer.dst_rank()], 0);
    }
    me.copy(me.get_output_buffer()[rank], in[rank], 1);
    barrier(/*relaxed=*/false);
  }
  return program;
}
