// Two thread blocks use a semaphore as a lock, and each takes it twice.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W71_semaphore_as_lock, Parameters&) {
  const auto sum = [](int64_t, int64_t) {
    return std::vector<Contribution>{
        {.rank = 0, .chunk = 0}, {.rank = 0, .chunk = 1}, {.rank = 0, .chunk = 2}, {.rank = 0, .chunk = 3}};
  };
  Program program({.name = "W71_semaphore_as_lock",
                   .collective = Custom{.ranks = 1, .input = 4, .output = 1, .post = sum},
                   .bounded_proof = true});
  Rank me(program, 0);
  const Buffer total(program, 0, 1);
  const Semaphore lock(program, 0, 1);
  const BaseBuffer input = me.get_input_buffer();
  me.reduce(input[0], {input[1]}, 0, total[0]);
  me.barrier({0, 1});
  for (int turn = 0; turn < 2; ++turn) {
    for (int block = 0; block < 2; ++block) {
      lock.acquire(block);
      if (turn == block) me.reduce(total[0], {input[2 + turn]}, block);
      lock.release(block);
    }
  }
  me.barrier({0, 1});
  me.copy(me.get_output_buffer()[0], total[0], 0);
  return program;
}
