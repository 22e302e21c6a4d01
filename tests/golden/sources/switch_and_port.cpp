// Two ranks add up by a switch channel, and synchronise by port channels.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(switch_and_port, Parameters& with) {
  with.summary("All-reduce by a switch channel, with port channels to begin and to end.");
  Program program({.name = "switch_and_port", .collective = AllReduce{.ranks = 2, .chunk_factor = 1}});
  const SwitchChannel inputs(program, {0, 1}, BufferKind::input);
  for (int rank = 0; rank < 2; ++rank) {
    PortChannel channel(program, 1 - rank, rank);
    channel.signal(0, SyncType::none);
    channel.wait(0, SyncType::after);
    inputs.at_rank(rank).reduce(0, 2, program.rank(rank).get_output_buffer()[{0, 2}], 0);
    channel.signal(0, SyncType::before);
    channel.wait(0, SyncType::none);
  }
  return program;
}
