// Two reductions overwrite one destination: y = x + a, then y = x + b. Fusing them would give y = x + a + b.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W20_two_reductions, Parameters&) {
  const auto second = [](int64_t, int64_t) {
    return std::vector<Contribution>{{.rank = 0, .chunk = 0}, {.rank = 0, .chunk = 2}};
  };
  Program program({.name = "W20_two_reductions",
                   .collective = Custom{.ranks = 1, .input = 3, .output = 1, .post = second}});
  Rank me(program, 0);
  const BaseBuffer input = me.get_input_buffer();
  const Chunk result = me.get_output_buffer()[0];
  me.reduce(input[0], {input[1]}, 0, result);
  me.reduce(input[0], {input[2]}, 0, result);
  return program;
}
