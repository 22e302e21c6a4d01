// Packets are read that no rank writes.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W59_packets_of_nobody, Parameters&) {
  Program program(
      {.name = "W59_packets_of_nobody", .collective = AllGather{.ranks = 1}, .protocol = Protocol::LL});
  Rank me(program, 0);
  const Buffer scratch(program, 0, 1);
  me.unpack_packets(me.get_output_buffer()[0], scratch[0], 0);
  return program;
}
