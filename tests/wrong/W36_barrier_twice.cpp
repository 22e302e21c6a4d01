// A thread block is in a barrier twice.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W36_barrier_twice, Parameters&) {
  Program program(
      {.name = "W36_barrier_twice", .collective = TestCollective{.ranks = 1, .input = 1, .output = 1}});
  program.rank(0).barrier({0, 0});
  return program;
}
