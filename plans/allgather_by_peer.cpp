// This all-gather uses direct stores, with separate thread blocks per peer: rank r writes its input into
// chunk r of every output.
//
// Each block serves one peer. The peer's block for this rank signals it twice: after its launch has begun, so
// that its output may be written, and after it has written. The first signal is relaxed, because nothing of
// this launch has to be visible yet. Only rank r's blocks write chunk r of any output. A launch ends when all
// of its blocks have ended, so the output is complete then.
//
// All links of a rank are busy from the first to the last byte, even if some ranks are ahead. In
// allgather_direct a rank goes from peer to peer, which is equally fast only while all ranks keep step.
//
// Cost: two barriers of two blocks; ranks - 1 inputs leave each rank, to all peers at the same time. Use it
// for messages of many megabytes.

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
      peer.signal(block, SyncType::both, /*relaxed=*/true);
      peer.wait(block, SyncType::both, /*relaxed=*/true);
      peer.put(Rank(program, to).get_output_buffer()[rank], mine, block);
      peer.signal(block);
      peer.wait(block);
    }
    if (!inplace) me.copy(me.get_output_buffer()[rank], mine, ranks - 1);
  }
  return program;
}
