#include <chorale/dsl.hpp>
using namespace chorale::dsl;

// The program is right, but not for the executor of MSCCL++.
CHORALE_PROGRAM(bad_mscclpp, Parameters&) {
  Program program({.name = "bad_mscclpp", .collective = TestCollective{.ranks = 2, .input = 4, .output = 4}});
  for (int rank = 0; rank < 2; ++rank) {
    const Rank me(program, rank), peer(program, 1 - rank);
    const BaseBuffer in = me.get_input_buffer(), out = me.get_output_buffer();
    MemoryChannel memory(program, 1 - rank, rank);
    PortChannel port(program, 1 - rank, rank);
    memory.signal(0);
    memory.wait(0);
    memory.get(out[1], peer.get_input_buffer()[0], 0);
    me.reduce(in[1], {in[2]}, 0, in[1], ReduceOp::max);
    port.put_with_signal(peer.get_output_buffer()[3], in[3], 0);
    port.flush(0);
    port.wait(0);
  }
  return program;
}
