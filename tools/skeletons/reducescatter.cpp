// This program is a reduce-scatter: rank r receives part r of the sum of the inputs of all ranks.
//
//   prove it:        chorale check my_reducescatter.cpp
//   run it:          chorale run my_reducescatter.cpp --set ranks=4
//   write its plan:  chorale compile my_reducescatter.cpp --set ranks=8 -o plan.json
//   run
//
// The proof covers every order in which thread blocks and ranks make progress. Remove a wait, and
// `chorale check` shows what then goes wrong.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(my_reducescatter, Parameters& with) {
  with.summary("Reduce-scatter: every rank reads its part of all inputs and adds them.");
  const int ranks = with("ranks", 4, "number of GPUs", {.min = 2, .max = 1024});
  // With chunk_factor = 1 an input has one chunk for every rank, and an output is one chunk.
  Program program(
      {.name = "my_reducescatter", .collective = ReduceScatter{.ranks = ranks, .chunk_factor = 1}});

  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    // Each rank begins with its next neighbour, so that no two ranks read from the same rank at the same
    // time.
    std::vector<MemoryChannel> peers;
    for (int i = 1; i < ranks; ++i) peers.push_back({program, (rank + i) % ranks, rank});
    // A signal says to a peer: what I did before is done. A wait takes one signal of the peer.
    const auto meet_peers = [&] {
      for (const MemoryChannel& peer : peers) peer.signal(0);
      for (const MemoryChannel& peer : peers) peer.wait(0);
    };

    const Chunk sum = me.get_output_buffer()[0];
    me.copy(sum, me.get_input_buffer()[rank], 0);  // the last argument is the thread block
    meet_peers();                                  // now all inputs may be read
    for (const MemoryChannel& peer : peers) {      // reads the peer's part, and adds it to the sum
      peer.reduce(sum, {program.rank(peer.dst_rank()).get_input_buffer()[rank]}, 0);
    }
    meet_peers();  // now all peers have read this input, so the application may change it
  }
  return program;
}
