// An all-reduce adds its peer's addend as it was sent, encoded.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(bad_codec_undecoded, Parameters&) {
  Program program({.name = "bad_codec_undecoded", .collective = AllReduce{.ranks = 2, .chunk_factor = 1}});
  const Codec codec{.format = CodecFormat::int8, .block = 64};
  Buffer slots[] = {{program, 0, 2}, {program, 1, 2}};
  for (int rank = 0; rank < 2; ++rank) {
    Rank me(program, rank);
    const MemoryChannel channel(program, 1 - rank, rank);
    channel.put(slots[1 - rank].slice(0, 2).encoded(codec), me.get_input_buffer().slice(0, 2), 0);
    channel.signal(0);
    channel.wait(0);
    me.reduce(me.get_input_buffer().slice(0, 2), {slots[rank].slice(0, 2)}, 0, me.get_output_buffer().slice(0, 2));
    channel.signal(0);
    channel.wait(0);
  }
  return program;
}
