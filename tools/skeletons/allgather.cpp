// This program is an all-gather: every rank receives the inputs of all ranks, in the order of the ranks.
//
//   prove it:        chorale check my_allgather.cpp
//   run it:          chorale run my_allgather.cpp --set ranks=4
//   write its plan:  chorale compile my_allgather.cpp --set ranks=8 -o plan.json
//
// The proof covers every order in which thread blocks and ranks make progress. Remove a wait, and
// `chorale check` shows what then goes wrong.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(my_allgather, Parameters& with) {
  with.summary("All-gather: every rank puts its input into the output of every rank.");
  const int ranks = with("ranks", 4, "number of GPUs", {.min = 2, .max = 1024});
  // With chunk_factor = 1 an input is one chunk, and an output has one chunk for every rank.
  Program program({.name = "my_allgather", .collective = AllGather{.ranks = ranks, .chunk_factor = 1}});

  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    // Each rank begins with its next neighbour, so that no two ranks write to the same rank at the same time.
    std::vector<MemoryChannel> peers;
    for (int i = 1; i < ranks; ++i) peers.push_back({program, (rank + i) % ranks, rank});
    // A signal says to a peer: what I did before is done. A wait takes one signal of the peer.
    const auto meet_peers = [&] {
      for (const MemoryChannel& peer : peers) peer.signal(0);
      for (const MemoryChannel& peer : peers) peer.wait(0);
    };

    const Chunk mine = me.get_input_buffer()[0];
    me.copy(me.get_output_buffer()[rank], mine, 0);  // the last argument is the thread block
    meet_peers();                                    // now all outputs may be written
    for (const MemoryChannel& peer : peers) {
      peer.put(program.rank(peer.dst_rank()).get_output_buffer()[rank], mine, 0);
    }
    meet_peers();  // now everything has arrived
  }
  return program;
}
