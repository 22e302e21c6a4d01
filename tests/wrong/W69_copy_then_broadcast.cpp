// A chunk is broadcast by the thread block that has just written it.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W69_copy_then_broadcast, Parameters&) {
  const auto first = [](int64_t, int64_t) { return std::vector<Contribution>{{.rank = 0, .chunk = 0}}; };
  Program program({.name = "W69_copy_then_broadcast",
                   .collective = Custom{.ranks = 2, .input = 1, .output = 1, .post = first}});
  const Buffer scratch(program, 0, 1);
  const SwitchChannel outputs(program, {0, 1}, BufferKind::output);
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  back.signal(0);  // the output of rank 1 may be overwritten
  there.wait(0);
  program.rank(0).copy(scratch[0], program.rank(0).get_input_buffer()[0], 0);
  outputs.at_rank(0).broadcast(scratch[0], 0, 1, 0);
  there.signal(0);
  back.wait(0);
  return program;
}
