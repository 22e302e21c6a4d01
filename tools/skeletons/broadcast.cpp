// This program is a broadcast: every rank receives the input of one rank, the root.
//
//   prove it:        chorale check my_broadcast.cpp
//   run it:          chorale run my_broadcast.cpp --set ranks=4
//   write its plan:  chorale compile my_broadcast.cpp --set ranks=8 -o plan.json
//
// The proof covers every order in which thread blocks and ranks make progress. Remove a wait, and
// `chorale check` shows what then goes wrong.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(my_broadcast, Parameters& with) {
  with.summary("Broadcast: the root puts its input into every output.");
  const int ranks = with("ranks", 4, "number of GPUs", {.min = 2, .max = 1024});
  const int root = with("root", 0, "the rank that sends", {.min = 0, .max = ranks - 1});
  // With chunk_factor = 1 an input and an output are one chunk each.
  Program program(
      {.name = "my_broadcast", .collective = Broadcast{.ranks = ranks, .root = root, .chunk_factor = 1}});

  Rank sender(program, root);
  const Chunk message = sender.get_input_buffer()[0];
  std::vector<MemoryChannel> peers;
  for (int i = 1; i < ranks; ++i) {
    const int rank = (root + i) % ranks;
    peers.push_back({program, rank, root});  // the destination comes first
    // A signal says to the peer: what I did before is done. A wait takes one signal of the peer.
    const MemoryChannel to_root(program, root, rank);
    to_root.signal(0);  // my output may be written now; the last argument is the thread block
    to_root.wait(0);    // the message has arrived
  }
  for (const MemoryChannel& peer : peers) {
    peer.wait(0);
    peer.put(program.rank(peer.dst_rank()).get_output_buffer()[0], message, 0);
    peer.signal(0);
  }
  sender.copy(sender.get_output_buffer()[0], message, 0);
  return program;
}
