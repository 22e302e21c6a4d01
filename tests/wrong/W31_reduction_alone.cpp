// No broadcast follows a switch reduction, which MSCCL++'s executor does not support.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W31_reduction_alone, Parameters&) {
  Program program({.name = "W31_reduction_alone", .collective = AllReduce{.ranks = 2}});
  const SwitchChannel inputs(program, {0, 1}, BufferKind::input);
  for (int rank = 0; rank < 2; ++rank) {
    const MemoryChannel channel(program, 1 - rank, rank);
    channel.signal(0);
    channel.wait(0);
    inputs.at_rank(rank).reduce(0, 2, program.rank(rank).get_output_buffer()[{0, 2}], 0);
    channel.signal(0);  // the peer may change its input again
    channel.wait(0);
  }
  return program;
}
