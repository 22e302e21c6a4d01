// All-gather by direct stores, with thread blocks for each peer: rank r writes its input into chunk r of
// every output.
//
// A block serves one peer and is told by that peer's block for this rank alone, once when its launch has
// begun, so that its output may be written, and once when it has written. Chunk r of any output is written by
// rank r's blocks alone, and a launch ends when all of its blocks have, so the output is complete then.
//
// All links of a rank are busy from the first to the last byte, whoever runs ahead. In allgather_direct a
// rank turns from peer to peer, which is as good only as long as all ranks turn together.
//
// Cost: two barriers of two blocks; (ranks - 1) S bytes leave each rank, to all peers at the same time. For
// messages of many megabytes.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(allgather_by_peer, Parameters& with) {
  with.summary("All-gather of large messages: thread blocks for each peer.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  const bool inplace = with("inplace", false, "the input is the rank's part of the output");
  Program program({.name = "allgather_by_peer",
                   .collective = AllGather{.ranks = ranks, .chunk_factor = 1, .inplace = inplace},
                   .instances = with("instances", 4, "thread blocks for each peer", {.min = 1})});
  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    const Chunk mine = me.get_input_buffer()[0];
    for (int i = 1; i < ranks; ++i) {
      const int to = (rank + i) % ranks, block = i - 1;
      MemoryChannel peer(program, to, rank);
      peer.signal(block);
      peer.wait(block);
      peer.put(Rank(program, to).get_output_buffer()[rank], mine, block);
      peer.signal(block);
      peer.wait(block);
    }
    if (!inplace) me.copy(me.get_output_buffer()[rank], mine, ranks - 1);
  }
  return program;
}
