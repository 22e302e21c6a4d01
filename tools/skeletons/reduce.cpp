// This program is a reduce: one rank, the root, receives the sum of all inputs.
//
//   prove it:        chorale check my_reduce.cpp
//   run it:          chorale run my_reduce.cpp --set ranks=4
//   write its plan:  chorale compile my_reduce.cpp --set ranks=8 -o plan.json
//
// The proof covers every order in which thread blocks and ranks make progress. Remove a wait, and
// `chorale check` shows what then goes wrong.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(my_reduce, Parameters& with) {
  with.summary("Reduce: the root reads all inputs and adds them up.");
  const int ranks = with("ranks", 4, "number of GPUs", {.min = 2, .max = 1024});
  const int root = with("root", 0, "the rank that receives", {.min = 0, .max = ranks - 1});
  // With chunk_factor = 1 an input and an output are one chunk each.
  Program program(
      {.name = "my_reduce", .collective = Reduce{.ranks = ranks, .root = root, .chunk_factor = 1}});

  Rank receiver(program, root);
  const Chunk mine = receiver.get_input_buffer()[0], sum = receiver.get_output_buffer()[0];
  std::vector<MemoryChannel> peers;
  for (int i = 1; i < ranks; ++i) {
    const int rank = (root + i) % ranks;
    peers.push_back({program, rank, root});  // the destination comes first
    // A signal says to the peer: what I did before is done. A wait takes one signal of the peer.
    const MemoryChannel to_root(program, root, rank);
    to_root.signal(0);  // my input may be read now; the last argument is the thread block
    to_root.wait(0);    // my input has been read
  }
  for (const MemoryChannel& peer : peers) {
    peer.wait(0);
    // The first sum begins with the root's own input, and each later one with the sum so far.
    const Chunk theirs = program.rank(peer.dst_rank()).get_input_buffer()[0];
    peer.reduce(&peer == &peers.front() ? mine : sum, {theirs}, 0, sum);
    peer.signal(0);
  }
  return program;
}
