// One rank has 20 barriers and 20 semaphores; MSCCL++'s executor holds 16 of each.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W16_many_barriers, Parameters&) {
  constexpr int helpers = 20;
  const auto same = [](int64_t, int64_t chunk) {
    return std::vector<Contribution>{{.rank = 0, .chunk = uint64_t(chunk)}};
  };
  Program program(
      {.name = "W16_many_barriers",
       .collective = Custom{.ranks = 1, .input = 2 * helpers, .output = 2 * helpers, .post = same}});
  Rank me(program, 0);
  const BaseBuffer input = me.get_input_buffer(), output = me.get_output_buffer();
  const Buffer scratch(program, 0, 2 * helpers);
  std::vector<Semaphore> semaphores;
  for (int k = 0; k < helpers; ++k) semaphores.emplace_back(program, 0, 0);
  for (int k = 0; k < helpers; ++k) me.copy(scratch[k], input[k], 0);
  for (int k = 0; k < helpers; ++k) semaphores[k].release(0);
  for (int k = 0; k < helpers; ++k) {
    semaphores[k].acquire(k + 1);
    me.copy(output[k], scratch[k], k + 1);
    me.copy(scratch[helpers + k], input[helpers + k], k + 1);
  }
  for (int k = 0; k < helpers; ++k) me.barrier({0, k + 1});
  for (int k = 0; k < helpers; ++k) me.copy(output[helpers + k], scratch[helpers + k], 0);
  return program;
}
