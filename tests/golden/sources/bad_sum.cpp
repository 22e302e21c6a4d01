// An all-reduce of 2 ranks. `fault` is a mistake in its reduction.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(bad_sum, Parameters& with) {
  const std::string fault = with("fault", "", "a mistake: no_dst or sizes");
  Program program({.name = "bad_sum", .collective = AllReduce{.ranks = 2, .chunk_factor = 1}});
  const Buffer scratch[] = {Buffer(program, 0, 1), Buffer(program, 1, 1)};
  for (int64_t r = 0; r < 2; ++r) {
    const int64_t peer = 1 - r;
    Rank me(program, r);
    MemoryChannel channel(program, peer, r);
    channel.signal(0);
    channel.wait(0);
    channel.put(scratch[peer][0], me.get_input_buffer()[peer], 0);
    channel.signal(0);
    channel.wait(0);
    const Chunk sum = fault == "no_dst" ? me.get_input_buffer()[r] : me.get_output_buffer()[r];
    if (fault == "no_dst")
      me.reduce(sum, {scratch[r][0]}, 0);
    else
      me.reduce(fault == "sizes" ? me.get_input_buffer()[{0, 2}] : me.get_input_buffer()[r], {scratch[r][0]}, 0,
                sum);
    channel.put(program.rank(peer).get_output_buffer()[r], sum, 0);
    channel.signal(0);
    channel.wait(0);
  }
  return program;
}
