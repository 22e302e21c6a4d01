// The switch reduces at chunk 0 and broadcasts to chunk 3: both offsets survive fusing.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W30_broadcast_elsewhere, Parameters&) {
  const auto sum = [](int64_t, int64_t) {
    return std::vector<Contribution>{{.rank = 0, .chunk = 0}, {.rank = 1, .chunk = 0}};
  };
  Program program({.name = "W30_broadcast_elsewhere",
                   .collective = Custom{.ranks = 2, .input = 1, .output = 1, .post = sum}});
  const Buffer scratch[] = {Buffer(program, 0, 5), Buffer(program, 1, 5)};
  const SwitchChannel all(program, {0, 1}, BufferKind::scratch);
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  for (int rank = 0; rank < 2; ++rank)
    program.rank(rank).copy(scratch[rank][0], program.rank(rank).get_input_buffer()[0], 0);
  back.signal(0);
  there.signal(0);
  there.wait(0);
  back.wait(0);
  all.at_rank(0).reduce(0, 1, scratch[0][4], 0);
  all.at_rank(0).broadcast(scratch[0][4], 3, 1, 0);
  there.signal(0);
  back.wait(0);
  for (int rank = 0; rank < 2; ++rank)
    program.rank(rank).copy(program.rank(rank).get_output_buffer()[0], scratch[rank][3], 0);
  return program;
}
