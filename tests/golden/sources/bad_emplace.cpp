// The standard library makes the channels of this program, and one of them leads to a rank that is not there.
#include <chorale/dsl.hpp>
#include <vector>
using namespace chorale::dsl;

CHORALE_PROGRAM(bad_emplace, Parameters&) {
  Program program({.name = "bad_emplace", .collective = AllGather{.ranks = 4, .chunk_factor = 1}});
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<MemoryChannel> peers;
    for (int i = 1; i < 3; ++i) peers.emplace_back(program, rank + i, rank);
    peers.push_back({program, rank, rank});
    for (const MemoryChannel& peer : peers) peer.signal(0);
  }
  return program;
}
