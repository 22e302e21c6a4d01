// Rank 0 broadcasts a chunk that is on rank 1.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W49_source_of_another_rank, Parameters&) {
  Program program({.name = "W49_source_of_another_rank",
                   .collective = TestCollective{.ranks = 2, .input = 1, .output = 1}});
  const SwitchChannel outputs(program, {0, 1}, BufferKind::output);
  outputs.at_rank(0).broadcast(program.rank(1).get_input_buffer()[0], 0, 1, 0);
  return program;
}
