/// \file
/// What thread blocks stood at when a run had to stop.
#pragma once

#include <cstdint>
#include <string>

namespace chorale::interpreter {

/// What a parked block waits for, kept for the report of a hang.
struct Waiting {
  const char* what = nullptr;      ///< the op's name, a literal; null: nothing was said
  uint32_t op_index = 0;           ///< in the block's ops
  uint64_t expected = 0;           ///< the value it waits for
  const uint64_t* word = nullptr;  ///< where it looks; may be null
  int peer = -1;                   ///< the rank that should write it; -1: unknown
};

/// A block that had not ended when the world stopped.
struct Stuck {
  int rank = 0;
  int block = 0;
  bool parked = false;  ///< false: it could run
  Waiting waiting;
  uint64_t seen = 0;      ///< *waiting.word at that time, 0 if there is none
  std::string line = {};  ///< what there is to say of it, see report.hpp; "": nothing
};

}  // namespace chorale::interpreter
