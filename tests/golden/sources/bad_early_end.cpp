#include <chorale/dsl.hpp>

using namespace chorale::dsl;

// Rank 1 does not wait for the data that rank 0 puts into its output.
CHORALE_PROGRAM(bad_early_end, Parameters&) {
  Program program({.name = "bad_early_end", .collective = SendRecv{.ranks = 2, .chunk_factor = 1}});
  MemoryChannel there(program, 1, 0), back(program, 0, 1);
  back.signal(0);
  there.wait(0);
  there.put(program.rank(1).get_output_buffer()[0], program.rank(0).get_input_buffer()[0], 0);
  return program;
}
