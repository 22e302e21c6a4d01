// In place, a copy overwrites as output what the previous copy reads as input.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W45_in_place, Parameters&) {
  const auto swapped = [](int64_t, int64_t chunk) {
    return std::vector<Contribution>{{.rank = 0, .chunk = uint64_t(1 - chunk)}};
  };
  Program program(
      {.name = "W45_in_place",
       .collective = Custom{.ranks = 1, .input = 2, .output = 2, .post = swapped, .inplace = true}});
  Rank me(program, 0);
  const BaseBuffer input = me.get_input_buffer(), output = me.get_output_buffer();
  const Buffer scratch(program, 0, 2);
  me.copy(scratch[1], input[1], 0);
  me.barrier({0});
  me.copy(scratch[0], input[0], 0);
  me.copy(output[0], scratch[1], 0);
  me.copy(output[1], scratch[0], 0);
  return program;
}
