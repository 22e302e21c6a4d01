#include <chorale/dsl.hpp>

using namespace chorale::dsl;

// The program names its own collective wrongly, so its result has no promise.
CHORALE_PROGRAM(misspelt_collective, Parameters&) {
  Collective collective = AllReduce{.ranks = 1};
  collective.name = "allreduse";
  Program program({.name = "misspelt_collective", .collective = collective});
  const Rank rank = program.rank(0);
  rank.copy(rank.get_output_buffer()[0], rank.get_input_buffer()[0], 0);
  return program;
}
