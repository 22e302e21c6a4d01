// The indices lack their braces, so that the comma drops the first one.
#include <chorale/dsl.hpp>
using namespace chorale::dsl;

CHORALE_PROGRAM(bad_comma, Parameters&) {
  Program program({.name = "bad_comma", .collective = AllGather{.ranks = 2, .chunk_factor = 2}});
  for (int rank = 0; rank < 2; ++rank) {
    Rank me(program, rank);
    me.copy(me.get_output_buffer()[0, 2], me.get_input_buffer()[0, 1], 0);
  }
  return program;
}
