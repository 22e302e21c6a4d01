// The program has no name.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W66_no_name, Parameters&) {
  Program program({.collective = TestCollective{.ranks = 1, .input = 1, .output = 1}});
  Rank me(program, 0);
  me.copy(me.get_output_buffer()[0], me.get_input_buffer()[0], 0);
  return program;
}
