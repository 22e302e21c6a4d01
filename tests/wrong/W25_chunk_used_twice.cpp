// With two instances, one Chunk is in two broadcasts: each is shifted once.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W25_chunk_used_twice, Parameters&) {
  const auto second = [](int64_t, int64_t) { return std::vector<Contribution>{{.rank = 0, .chunk = 1}}; };
  Program program({.name = "W25_chunk_used_twice",
                   .collective = Custom{.ranks = 2, .input = 2, .output = 2, .post = second},
                   .instances = 2});
  const SwitchChannel outputs(program, {0, 1}, BufferKind::output);
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  const Chunk sent = program.rank(0).get_input_buffer()[1];
  back.signal(0);  // the output of rank 1 may be overwritten
  there.wait(0);
  outputs.at_rank(0).broadcast(sent, 0, 1, 0);
  outputs.at_rank(0).broadcast(sent, 1, 1, 0);
  there.signal(0);
  back.wait(0);
  return program;
}
