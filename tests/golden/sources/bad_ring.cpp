// An all-gather in a ring of 4 ranks. The first step sends the rank's own input, the others forward what has
// arrived. `fault` is a mistake of a beginner.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(bad_ring, Parameters& with) {
  const std::string fault = with("fault", "", "a mistake: first, forward, source, own, step or neighbour");
  const int ranks = 4;
  Program program({.name = "bad_ring", .collective = AllGather{.ranks = ranks, .chunk_factor = 1}});
  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    const int next = (rank + (fault == "neighbour" ? 2 : 1)) % ranks, prev = (rank + ranks - 1) % ranks;
    const MemoryChannel to_next(program, next, rank);
    const MemoryChannel from_prev(program, prev, rank);
    const auto mine = me.get_output_buffer(), there = program.rank(next).get_output_buffer();
    me.copy(mine[fault == "own" ? next : rank], me.get_input_buffer()[0], 0);
    from_prev.signal(0, SyncType::none);
    to_next.wait(0, SyncType::after);
    to_next.put(there[fault == "first" ? prev : rank], me.get_input_buffer()[0], 0);
    to_next.signal(0, SyncType::before);
    from_prev.wait(0, SyncType::after);
    for (int step = fault == "step" ? 2 : 1; step < ranks - 1; ++step) {
      const int chunk = (rank + ranks - step) % ranks, wrong = (chunk + 1) % ranks;
      to_next.put(there[fault == "forward" ? wrong : chunk], mine[fault == "source" ? wrong : chunk], 0);
      to_next.signal(0, SyncType::before);
      from_prev.wait(0, SyncType::after);
    }
  }
  return program;
}
