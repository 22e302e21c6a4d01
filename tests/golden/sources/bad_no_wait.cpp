// Rank 1 never waits for rank 0, and the last chunk is past the end of the output.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(bad_no_wait, Parameters& with) {
  const bool past_end = with("past_end", false, "write behind the end as well");
  Program program({.name = "bad_no_wait", .collective = SendRecv{.ranks = 2, .chunk_factor = 1}});
  MemoryChannel there(program, 1, 0);
  there.put(program.rank(1).get_output_buffer()[past_end ? 1 : 0], program.rank(0).get_input_buffer()[0], 0);
  there.signal(0);
  return program;
}
