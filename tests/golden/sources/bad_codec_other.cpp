// An all-gather decodes by another codec than it encodes by.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(bad_codec_other, Parameters&) {
  Program program({.name = "bad_codec_other", .collective = AllGather{.ranks = 2, .chunk_factor = 1}});
  Buffer slots[] = {{program, 0, 1}, {program, 1, 1}};
  for (int rank = 0; rank < 2; ++rank) {
    Rank me(program, rank);
    const MemoryChannel channel(program, 1 - rank, rank);
    me.copy(me.get_output_buffer()[rank], me.get_input_buffer()[0], 0);
    channel.put(slots[1 - rank][0].encoded({.format = CodecFormat::int8, .block = 64}), me.get_input_buffer()[0], 0);
    channel.signal(0);
    channel.wait(0);
    me.copy(me.get_output_buffer()[1 - rank], slots[rank][0].encoded({.format = CodecFormat::int8, .block = 128}), 0);
    channel.signal(0);
    channel.wait(0);
  }
  return program;
}
