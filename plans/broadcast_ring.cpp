// This broadcast follows a chain from the root: every rank passes each chunk on when it has arrived.
//
// A rank first tells its left neighbour that it has been launched, so that its output may be written. It
// returns when all chunks have arrived and have been passed on, because nothing else is written to it and
// nobody reads from it.
//
// Cost: ranks hops of latency, and the transfer of one message and (ranks - 2) chunks. Each rank sends the
// message at most once, over one link, and all of them send at the same time. More chunks mean more signals
// and a shorter wait for the first chunk.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(broadcast_ring, Parameters& with) {
  with.summary("Broadcast of large messages: from neighbour to neighbour, in chunks.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  const int root = with("root", 0, "the rank that sends", {.min = 0, .max = ranks - 1});
  const int chunks = with("chunk_factor", 8, "chunks of the message", {.min = 1});
  Program program({.name = "broadcast_ring",
                   .collective = Broadcast{.ranks = ranks, .root = root, .chunk_factor = chunks},
                   .instances = with("instances", 4, "chains that split every chunk", {.min = 1})});

  for (int hop = 0; hop < ranks; ++hop) {
    const int rank = (root + hop) % ranks, next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    const bool first = hop == 0, last = hop == ranks - 1;
    Rank me(program, rank);
    const BaseBuffer from = first ? me.get_input_buffer() : me.get_output_buffer();
    const BaseBuffer to = program.rank(next).get_output_buffer();
    std::optional<MemoryChannel> left, right;
    if (!first) left.emplace(MemoryChannel(program, previous, rank));
    if (!last) right.emplace(MemoryChannel(program, next, rank));

    if (left) left->signal(0);
    if (right) right->wait(0);
    for (int chunk = 0; chunk < chunks; ++chunk) {
      if (left) left->wait(0);
      if (right) right->put(to[chunk], from[chunk], 0);
      if (right) right->signal(0);
    }
    if (first) me.copy(me.get_output_buffer()[{0, chunks}], me.get_input_buffer()[{0, chunks}], 0);
  }
  return program;
}
