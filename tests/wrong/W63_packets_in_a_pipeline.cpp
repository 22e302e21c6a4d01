// Packets are in a pipeline: every turn moves its unit.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W63_packets_in_a_pipeline, Parameters&) {
  const auto other = [](int64_t rank, int64_t) {
    return std::vector<Contribution>{{.rank = uint32_t(1 - rank), .chunk = 0}};
  };
  Program program({.name = "W63_packets_in_a_pipeline",
                   .collective = Custom{.ranks = 2, .input = 1, .output = 1, .post = other},
                   .protocol = Protocol::LL,
                   .use_double_scratch_buffer = true});
  const Buffer scratch[] = {Buffer(program, 0, 1), Buffer(program, 1, 1)};
  const MemoryChannel channels[] = {MemoryChannel(program, 1, 0), MemoryChannel(program, 0, 1)};
  program.loop(1024, 1, [&] {
    for (int rank = 0; rank < 2; ++rank) {
      Rank me(program, rank);
      channels[rank].put_packets(scratch[1 - rank][0], me.get_input_buffer()[0], 0);
      me.unpack_packets(me.get_output_buffer()[0], scratch[rank][0], 0);
    }
  });
  return program;
}
