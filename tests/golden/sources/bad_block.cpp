// The reduction is in another thread block than its wait.
#include <chorale/dsl.hpp>
using namespace chorale::dsl;
CHORALE_PROGRAM(bad_block, Parameters& with) {
  const int ranks = with("ranks", 4, "number of GPUs", {.min = 4, .max = 4});
  Program program({.name = "bad_block", .collective = AllReduce{.ranks = ranks, .chunk_factor = 1, .inplace = true}});
  for (int leader = 0; leader < ranks; leader += 2) {
    const int mate = leader + 1, other = (leader + 2) % ranks;
    Rank lead(program, leader), follow(program, mate);
    Buffer scratch(program, leader, 4);
    MemoryChannel down(program, mate, leader), up(program, leader, mate);
    MemoryChannel across(program, other, leader);
    const Chunk all = lead.get_input_buffer()[{0, 4}];
    up.signal(0);                                             // my input may be read
    down.wait(0);
    down.reduce(all, {follow.get_input_buffer()[{0, 4}]}, 1); // leader has the sum of the pair
    across.signal(0);                                         // may be read
    across.wait(0);
    across.get(scratch[{0, 4}], program.rank(other).get_input_buffer()[{0, 4}], 0);
    across.signal(0);                                         // have read
    across.wait(0);
    lead.reduce(all, {scratch[{0, 4}]}, 0);
    down.put(follow.get_input_buffer()[{0, 4}], all, 0);
    down.signal(0);
    up.wait(0);
  }
  return program;
}
