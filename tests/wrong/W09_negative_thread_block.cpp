// An operation is for a thread block below 0.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W09_negative_thread_block, Parameters&) {
  Program program({.name = "W09_negative_thread_block",
                   .collective = TestCollective{.ranks = 1, .input = 2, .output = 2}});
  Rank me(program, 0);
  me.copy(me.get_output_buffer()[0], me.get_input_buffer()[0], 0);
  me.copy(me.get_output_buffer()[1], me.get_input_buffer()[1], -1);
  return program;
}
