// The result of a switch reduction is broadcast, and read again later: the fused operation still writes it.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W62_result_read_later, Parameters&) {
  const auto sum = [](int64_t, int64_t) {
    return std::vector<Contribution>{{.rank = 0, .chunk = 0}, {.rank = 1, .chunk = 0}};
  };
  Program program({.name = "W62_result_read_later",
                   .collective = Custom{.ranks = 2, .input = 1, .output = 1, .post = sum}});
  const Buffer scratch[] = {Buffer(program, 0, 3), Buffer(program, 1, 3)};
  const SwitchChannel all(program, {0, 1}, BufferKind::scratch);
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  for (int rank = 0; rank < 2; ++rank)
    program.rank(rank).copy(scratch[rank][0], program.rank(rank).get_input_buffer()[0], 0);
  back.signal(0);
  there.signal(0);
  there.wait(0);
  back.wait(0);
  all.at_rank(0).reduce(0, 1, scratch[0][1], 0);
  all.at_rank(0).broadcast(scratch[0][1], 2, 1, 0);
  there.signal(0);
  back.wait(0);
  program.rank(0).copy(program.rank(0).get_output_buffer()[0], scratch[0][1], 0);
  program.rank(1).copy(program.rank(1).get_output_buffer()[0], scratch[1][2], 0);
  return program;
}
