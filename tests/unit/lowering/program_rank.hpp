/// \file
/// Holds the program of a rank in tests, and the memory that it uses.
#pragma once

#include <cstdint>
#include <vector>

#include "chorale/device/engine.hpp"
#include "executor/lowering/lower.hpp"

namespace chorale::test {

/// Holds lines with the alignment of device memory.
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
struct ProgramRank {
  lowering::DeviceProgram program;
  lowering::ProgramAddresses places;
  std::vector<uint32_t> peers;  ///< by channel
  char *in = nullptr, *out = nullptr;
  Lines states;
  lowering::SwitchAliases
      switches;  ///< their addresses stand for the members' memory, and have none of their own

  /// Returns the members' addresses for the switch's address `at`.
  std::vector<char*> members_of(const char* at) const {
    std::vector<char*> members;
    for (const lowering::SwitchAlias& alias : switches.all) {
      if (at < alias.at || at >= alias.at + alias.bytes) continue;
      for (char* const member : alias.members) members.push_back(member + (at - alias.at));
    }
    return members;
  }
};

}  // namespace chorale::test
