// A reduction takes the maximum; MSCCL++'s executor computes a sum.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W21_maximum, Parameters&) {
  Program program({.name = "W21_maximum", .collective = AllReduce{.ranks = 2}});
  for (int rank = 0; rank < 2; ++rank) {
    Rank me(program, rank), peer(program, 1 - rank);
    const MemoryChannel channel(program, 1 - rank, rank);
    channel.signal(0);
    channel.wait(0);
    channel.reduce(me.get_input_buffer()[{0, 2}], {peer.get_input_buffer()[{0, 2}]}, 0,
                   me.get_output_buffer()[{0, 2}], ReduceOp::max);
    channel.signal(0);  // the peer may change its input again
    channel.wait(0);
  }
  return program;
}
