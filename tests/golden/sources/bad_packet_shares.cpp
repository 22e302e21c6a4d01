// Three thread blocks send packets that two read.
#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(bad_packet_shares, Parameters&) {
  Program program({.name = "bad_packet_shares",
                   .collective = AllGather{.ranks = 2, .chunk_factor = 1},
                   .protocol = Protocol::LL});
  Buffer parts[] = {{program, 0, 1}, {program, 1, 1}};
  const ThreadBlockGroup three({0, 1, 2}), two({0, 1});
  for (int rank = 0; rank < 2; ++rank) {
    Rank me(program, rank);
    MemoryChannel peer(program, 1 - rank, rank);
    me.copy(me.get_output_buffer()[rank], me.get_input_buffer()[0], three);
    peer.put_packets(parts[1 - rank][0], me.get_input_buffer()[0], three);
    me.unpack_packets(me.get_output_buffer()[1 - rank], parts[rank][0], two);
  }
  return program;
}
