// With 20 peers fused operations have 20 channels and 20 destinations; MSCCL++'s executor holds 8 and 10.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W15_many_peers, Parameters&) {
  constexpr int ranks = 21;
  Program program({.name = "W15_many_peers", .collective = AllGather{.ranks = ranks}});
  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    const Chunk mine = me.get_input_buffer()[0];
    std::vector<MemoryChannel> peers;
    for (int step = 1; step < ranks; ++step) peers.push_back({program, (rank + step) % ranks, rank});
    me.copy(me.get_output_buffer()[rank], mine, 0);
    for (const MemoryChannel& peer : peers) peer.signal(0);
    for (const MemoryChannel& peer : peers) peer.wait(0);
    for (const MemoryChannel& peer : peers)
      peer.put(program.rank(peer.dst_rank()).get_output_buffer()[rank], mine, 0);
    for (const MemoryChannel& peer : peers) peer.signal(0);
    for (const MemoryChannel& peer : peers) peer.wait(0);
  }
  return program;
}
