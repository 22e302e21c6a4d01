// Two ranks swap the halves of their data; the result is defined segment by segment.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(custom_swap, Parameters& with) {
  const bool wrong = with("wrong", false, "leave the halves where they are");
  const auto swapped = [](int64_t rank, int64_t chunk) {
    return std::vector<Contribution>{{.rank = uint32_t(1 - rank), .chunk = uint64_t(1 - chunk)}};
  };
  Program program(
      {.name = "custom_swap", .collective = Custom{.ranks = 2, .input = 2, .output = 2, .post = swapped}});
  for (int rank = 0; rank < 2; ++rank) {
    const int peer = 1 - rank;
    MemoryChannel channel(program, peer, rank);
    channel.signal(0, SyncType::none, true);
    channel.wait(0, SyncType::after, true);
    for (int half = 0; half < 2; ++half) {
      channel.put(program.rank(peer).get_output_buffer()[wrong ? half : 1 - half],
                  program.rank(rank).get_input_buffer()[half], 0);
    }
    channel.signal(0, SyncType::before);
    channel.wait(0, SyncType::none);
  }
  return program;
}
