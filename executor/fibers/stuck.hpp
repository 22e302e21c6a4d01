/// \file
/// Records the state of thread blocks when a run had to stop.
#pragma once

#include <cstdint>
#include <string>

namespace chorale::fibers {

/// Describes the wait of a parked block, for the report of a hang.
struct Waiting {
  const char* what = nullptr;      ///< the op's name, a literal; null: the block has reported no wait
  uint32_t op_index = 0;           ///< position in the block's ops
  uint64_t expected = 0;           ///< the value for which it waits
  const uint64_t* word = nullptr;  ///< the word that it reads; may be null
  int peer = -1;                   ///< the rank that should write the word; -1: unknown
};

/// Describes a block that had not ended when the world stopped.
struct Stuck {
  int rank = 0;
  int block = 0;
  bool parked = false;  ///< false: it could run
  Waiting waiting;
  uint64_t seen = 0;      ///< *waiting.word at that time; 0 if there is no word
  std::string line = {};  ///< its line in the report, see report.hpp; "": no line
};

}  // namespace chorale::fibers
