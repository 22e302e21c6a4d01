// The units of a pipeline cut the blocks of encoded elements.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(bad_codec_block, Parameters&) {
  Program program({.name = "bad_codec_block", .collective = AllGather{.ranks = 2, .chunk_factor = 1}});
  const Codec codec{.format = CodecFormat::fp8_e4m3, .block = 256};
  Buffer slots[] = {{program, 0, 2}, {program, 1, 2}};
  program.loop(512, 1, [&] {
    for (int rank = 0; rank < 2; ++rank) {
      Rank me(program, rank);
      me.copy(slots[rank][rank].encoded(codec), me.get_input_buffer()[0], 0);
    }
  });
  return program;
}
