// An all-gather of 4 ranks, each of which puts its input to all others. `fault` is a mistake of a beginner.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(bad_gather, Parameters& with) {
  const std::string fault =
      with("fault", "", "a mistake: index, early_signal, block, one_slot, first_chunk or factor");
  const int64_t ranks = 4, factor = fault == "factor" ? 1 : 2;
  Program program({.name = "bad_gather", .collective = AllGather{.ranks = ranks, .chunk_factor = factor}});
  std::vector<Buffer> slot;
  for (int64_t r = 0; r < ranks && fault == "one_slot"; ++r) slot.push_back(Buffer(program, r, 2));
  for (int64_t r = 0; r < ranks; ++r) {
    Rank me(program, r);
    std::vector<std::pair<int64_t, MemoryChannel>> peers;
    for (int64_t peer = 0; peer < ranks; ++peer) {
      if (peer != r) peers.push_back({peer, MemoryChannel(program, peer, r)});
    }
    const Chunk in = me.get_input_buffer()[{0, 2}];
    me.copy(me.get_output_buffer()[{2 * r, 2 * r + 2}], in, 0);
    // Every rank has begun before data comes.
    for (const auto& [peer, channel] : peers) {
      if (fault != "first_chunk") channel.signal(0);
    }
    for (const auto& [peer, channel] : peers) {
      if (fault != "first_chunk") channel.wait(0);
    }
    for (const auto& [peer, channel] : peers) {
      const int64_t at = fault == "index" ? 2 * peer : 2 * r;
      if (fault == "early_signal") channel.signal(0);
      const Chunk there = program.rank(peer).get_output_buffer()[{at, at + 2}];
      if (fault == "first_chunk") {
        for (int64_t chunk = at; chunk < at + 2; ++chunk)
          channel.put(program.rank(peer).get_output_buffer()[chunk], me.get_input_buffer()[0], 0);
        channel.signal(0);
        continue;
      }
      channel.put(fault == "one_slot" ? slot[peer][{0, 2}] : there, in, 0);
      if (fault != "early_signal") channel.signal(0);
    }
    for (const auto& [peer, channel] : peers) {
      channel.wait(fault == "block" ? 1 : 0);
      if (fault == "one_slot") me.copy(me.get_output_buffer()[{2 * peer, 2 * peer + 2}], slot[r][{0, 2}], 0);
    }
  }
  return program;
}
