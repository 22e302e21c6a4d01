// A launch has 4096 threads per block, an alignment of 0, and a smallest message above the largest.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W47_wrong_launch, Parameters&) {
  Program program({.name = "W47_wrong_launch",
                   .collective = TestCollective{.ranks = 1, .input = 1, .output = 1},
                   .threads_per_block = 4096,
                   .buffer_alignment = 0,
                   .min_message_size = 2048,
                   .max_message_size = 1024});
  Rank me(program, 0);
  me.copy(me.get_output_buffer()[0], me.get_input_buffer()[0], 0);
  return program;
}
