// With double scratch and plain puts, local and remote accesses use the same half in every launch.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W51_double_scratch, Parameters&) {
  const auto other = [](int64_t rank, int64_t) {
    return std::vector<Contribution>{{.rank = uint32_t(1 - rank), .chunk = 0}};
  };
  Program program({.name = "W51_double_scratch",
                   .collective = Custom{.ranks = 2, .input = 1, .output = 1, .post = other},
                   .use_double_scratch_buffer = true});
  const Buffer scratch[] = {Buffer(program, 0, 1), Buffer(program, 1, 1)};
  for (int rank = 0; rank < 2; ++rank) {
    Rank me(program, rank);
    const MemoryChannel channel(program, 1 - rank, rank);
    channel.signal(0);
    channel.wait(0);
    channel.put(scratch[1 - rank][0], me.get_input_buffer()[0], 0);
    channel.signal(0);
    channel.wait(0);
    me.copy(me.get_output_buffer()[0], scratch[rank][0], 0);
  }
  return program;
}
