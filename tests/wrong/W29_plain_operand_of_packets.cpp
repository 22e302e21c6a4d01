// Packets are added to a plain chunk that the thread block has just written.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W29_plain_operand_of_packets, Parameters&) {
  Program program({.name = "W29_plain_operand_of_packets",
                   .collective = AllReduce{.ranks = 2},
                   .protocol = Protocol::LL});
  const Buffer scratch[] = {Buffer(program, 0, 2), Buffer(program, 1, 2)};
  for (int rank = 0; rank < 2; ++rank) {
    Rank me(program, rank);
    const MemoryChannel channel(program, 1 - rank, rank);
    const Chunk input = me.get_input_buffer()[{0, 2}], output = me.get_output_buffer()[{0, 2}];
    channel.put_packets(scratch[1 - rank][{0, 2}], input, 0);
    me.copy(output, input, 0);
    me.reduce(output, {scratch[rank][{0, 2}]}, 0, output, ReduceOp::sum, true);
  }
  return program;
}
