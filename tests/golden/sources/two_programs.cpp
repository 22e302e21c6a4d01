#include <chorale/dsl.hpp>

using namespace chorale::dsl;

namespace {

Program copies(const char* name, int ranks) {
  Program program({.name = name, .collective = TestCollective{.ranks = ranks, .input = 1, .output = 1}});
  for (int rank = 0; rank < ranks; ++rank) {
    Rank me = program.rank(rank);
    me.copy(me.get_output_buffer()[0], me.get_input_buffer()[0], 0);
  }
  return program;
}

}  // namespace

CHORALE_PROGRAM(one_copy, Parameters&) { return copies("one_copy", 1); }

CHORALE_PROGRAM(two_copies, Parameters&) { return copies("two_copies", 2); }
