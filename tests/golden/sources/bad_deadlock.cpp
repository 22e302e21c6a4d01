// Both ranks wait before they signal.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(bad_deadlock, Parameters&) {
  Program program({.name = "bad_deadlock", .collective = SendRecv{.ranks = 2, .chunk_factor = 1}});
  for (int rank = 0; rank < 2; ++rank) {
    MemoryChannel channel(program, 1 - rank, rank);
    channel.wait(0);
    channel.signal(0);
  }
  return program;
}
