#include <chorale/dsl.hpp>

using namespace chorale::dsl;

// Names its collective itself, wrongly: nothing is promised of its result then.
CHORALE_PROGRAM(misspelt_collective, Parameters&) {
  Collective collective = AllReduce{.ranks = 1};
  collective.name = "allreduse";
  Program program({.name = "misspelt_collective", .collective = collective});
  const Rank rank = program.rank(0);
  rank.copy(rank.get_output_buffer()[0], rank.get_input_buffer()[0], 0);
  return program;
}
