/// \file
/// The host plays tapes with these structures, and on them.
#pragma once

#include <cstdint>
#include <vector>

#include "chorale/device/engine.hpp"
#include "executor/cuda/recorder.hpp"

namespace chorale::test {

/// Holds lines that are aligned as memory of a device is.
class Lines {
 public:
  explicit Lines(uint64_t bytes = 0) : lines_(bytes / sizeof(Line) + 1) {}
  char* data() { return lines_.front().bytes; }

 private:
  struct alignas(128) Line {
    char bytes[128] = {};
  };
  std::vector<Line> lines_;
};

/// Holds the data that a rank's launches work on.
struct TapeRank {
  cuda::Tapes tapes;
  cuda::TapePlaces places;
  uint32_t blocks = 0;
  std::vector<uint32_t> peers;  ///< by channel
  char *in = nullptr, *out = nullptr;
  uint64_t skip = 0;  ///< bytes of this round, already added to `in` and `out`
  Lines states;
  cuda::SwitchAliases
      switches;  ///< their addresses stand for the members' memory, and have none of their own

  /// Returns the addresses at which the members have what a switch has at `at`.
  std::vector<char*> members_of(const char* at) const {
    std::vector<char*> members;
    for (const cuda::SwitchAlias& alias : switches.all) {
      if (at < alias.at || at >= alias.at + alias.bytes) continue;
      for (char* const member : alias.members) members.push_back(member + (at - alias.at));
    }
    return members;
  }
};

/// Holds a page with its places settled for one launch.
struct SettledPage {
  cuda::PageHeader header;
  const cuda::TapeStep* steps;
  const cuda::TapeItem* items;
  std::vector<Mem> plain;
  std::vector<char*> packets;

  SettledPage(const cuda::PageShape& shape, const char* from, uint64_t epoch, char* in, char* out,
              uint64_t skip = 0)
      : header(*reinterpret_cast<const cuda::PageHeader*>(from)),
        steps(reinterpret_cast<const cuda::TapeStep*>(from + sizeof header)),
        items(reinterpret_cast<const cuda::TapeItem*>(from + shape.items_at())) {
    const auto* place = reinterpret_cast<const cuda::TapePlace*>(from + shape.plain_at());
    for (uint32_t at = 0; at < shape.plain; ++at, ++place) {
      plain.emplace_back(static_cast<void*>(place->settled(epoch, in, out, skip)), place->valid);
    }
    place = reinterpret_cast<const cuda::TapePlace*>(from + shape.packets_at());
    for (uint32_t at = 0; at < shape.packets; ++at, ++place)
      packets.push_back(place->settled(epoch, in, out, skip));
  }
};

/// Stands for all sinks of a step, or all that it combines.
template <class P>
struct StepSinks {
  const Mem* plain;
  const Packets<P>* packets;
  uint32_t n_plain, n_packets;

  static constexpr bool by_line = detail::by_line<Packets<P>>;

  void put(uint64_t at, uint64_t bytes, const char* from) const {
    for (uint32_t sink = 0; sink < n_plain; ++sink) plain[sink].put(at, bytes, from);
    for (uint32_t sink = 0; sink < n_packets; ++sink) packets[sink].put(at, bytes, from);
  }
};

}  // namespace chorale::test
