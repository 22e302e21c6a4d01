// A semaphore that starts at 0 is acquired, and no thread block releases it.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W37_acquire_without_release, Parameters&) {
  Program program({.name = "W37_acquire_without_release",
                   .collective = TestCollective{.ranks = 1, .input = 1, .output = 1}});
  const Semaphore semaphore(program, 0, 0);
  semaphore.acquire(0);
  return program;
}
