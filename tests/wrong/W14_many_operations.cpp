// One thread block has 80 operations; MSCCL++'s executor holds 64.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W14_many_operations, Parameters&) {
  constexpr int operations = 80;
  const auto reversed = [](int64_t, int64_t chunk) {
    return std::vector<Contribution>{{.rank = 0, .chunk = uint64_t(operations - 1 - chunk)}};
  };
  Program program(
      {.name = "W14_many_operations",
       .collective = Custom{.ranks = 1, .input = operations, .output = operations, .post = reversed}});
  Rank me(program, 0);
  for (int chunk = 0; chunk < operations; ++chunk)
    me.copy(me.get_output_buffer()[operations - 1 - chunk], me.get_input_buffer()[chunk], 0);
  return program;
}
