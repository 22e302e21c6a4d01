// A ring of two slots between thread blocks, with a token for a third: the first one fills a slot again that the second one has not read.
#include <chorale/dsl.hpp>
using namespace chorale::dsl;

CHORALE_PROGRAM(bad_overrun, Parameters& with) {
  const int tokens = with("tokens", 3, "what the ring is said to hold");
  Program program({.name = "bad_overrun", .collective = AllToAll{.ranks = 1, .chunk_factor = 3}});
  Rank me(program, 0);
  Buffer ring(program, 0, 2);
  Semaphore full(program, 0, 0), empty(program, 0, tokens);
  for (int chunk = 0; chunk < 3; ++chunk) {
    empty.acquire(0);
    me.copy(ring[chunk % 2], me.get_input_buffer()[chunk], 0);
    full.release(0);
    full.acquire(1);
    me.copy(me.get_output_buffer()[chunk], ring[chunk % 2], 1);
    empty.release(1);
  }
  return program;
}
