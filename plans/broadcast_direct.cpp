// This broadcast uses direct stores: the root writes its input into every rank's output.
//
// A receiver first tells the root that it has been launched, so that its output may be written. This signal
// is relaxed, because nothing of this launch has to be visible yet. It returns after the root's signal that
// follows the data, because nothing else is written to it. The root may return when it has stored and
// signalled, because nobody accesses its memory.
//
// Cost: two one-way latencies; ranks - 1 messages leave the root.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(broadcast_direct, Parameters& with) {
  with.summary("Broadcast: the root writes to everybody.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  const int root = with("root", 0, "the rank that sends", {.min = 0, .max = ranks - 1});
  Program program({.name = "broadcast_direct",
                   .collective = Broadcast{.ranks = ranks, .root = root, .chunk_factor = 1},
                   .instances = with("instances", 4, "thread blocks that split the message", {.min = 1})});

  Rank sender(program, root);
  const Chunk message = sender.get_input_buffer()[0];
  std::vector<MemoryChannel> to;
  for (int i = 1; i < ranks; ++i) {
    const int rank = (root + i) % ranks;
    to.push_back({program, rank, root});
    MemoryChannel from_root(program, root, rank);
    from_root.signal(0, SyncType::both, /*relaxed=*/true);
    from_root.wait(0);
  }
  for (MemoryChannel& channel : to) channel.wait(0, SyncType::both, /*relaxed=*/true);
  for (MemoryChannel& channel : to) {
    channel.put(Rank(program, channel.dst_rank()).get_output_buffer()[0], message, 0);
  }
  for (MemoryChannel& channel : to) channel.signal(0);
  sender.copy(sender.get_output_buffer()[0], message, 1);  // in a block that delays no sends
  return program;
}
