// Three ranks exchange their inputs. The compiler joins the first two waits of a rank, and the second one is
// never answered.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(bad_joined, Parameters&) {
  Program program({.name = "bad_joined", .collective = AllGather{.ranks = 3, .chunk_factor = 1}});
  for (int rank = 0; rank < 3; ++rank) {
    Rank me(program, rank);
    const MemoryChannel left(program, (rank + 2) % 3, rank), right(program, (rank + 1) % 3, rank);
    const Chunk mine = me.get_input_buffer()[0];
    me.copy(me.get_output_buffer()[rank], mine, 0);
    left.signal(0, SyncType::before);
    right.wait(0, SyncType::none);
    left.wait(0, SyncType::after);
    left.put(program.rank(left.dst_rank()).get_output_buffer()[rank], mine, 0);
    right.put(program.rank(right.dst_rank()).get_output_buffer()[rank], mine, 0);
    left.signal(0, SyncType::before);
    right.signal(0, SyncType::none);
    right.signal(0, SyncType::none);
    left.wait(0, SyncType::none);
    right.wait(0, SyncType::after);
  }
  return program;
}
