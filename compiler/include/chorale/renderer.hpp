#pragma once
/// \file
/// render() writes findings as text, and a Renderer writes many findings of one plan. op_words() describes an
/// operation in words.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "chorale/diagnostic.hpp"

namespace chorale {

/// Writes one finding in the way of compilers: place, text, check, operation, notes, help.
///   mine.cpp:11: error: this wait is never answered [pairing]
///     rank 0, thread block 0, op 0: wait rank 1 (memory channel 0)
///
/// If the finding is about a part of the plan file, or if the author's line is unknown, the JSON path
/// follows:
///     in the plan: /gpus/0/threadblocks/0/ops/0/channel_ids/0
///
/// \param severity  the word that stands before the text
std::string render(const Plan&, const Diagnostic&, const std::string& severity = "error");

/// Writes all findings and a last line "1 error" or "3 errors". Returns "" if there are none.
std::string render(const Plan&, const Diagnostics&);

/// Writes each warning as render() does, without a last line that counts them.
std::string render_warnings(const Plan&, const Diagnostics&);

/// Describes one operation in words, for example "put input[0:1] -> output[2:3] of rank 1 (memory)". Ids that
/// name nothing get a '?'.
/// \param most  about how many operands of one side, and how many channels, it names; the number of the
/// others follows
std::string op_words(const Gpu&, const ThreadBlock&, const Op&, size_t most = SIZE_MAX);

/// Does what render() does, but faster for many findings. It finds the positions of a thread block's
/// operations in the plan file only once. The plan must outlive it and must not change.
class Renderer {
 public:
  explicit Renderer(const Plan& plan) : plan_(plan) {}
  std::string operator()(const Diagnostic&, const std::string& severity = "error");

 private:
  /// Says where an operation is in a plan file. The body of a pipeline is a list of its own.
  struct Slot {
    uint32_t position;  ///< position in that list
    uint32_t pipeline;  ///< number of the pipeline operation whose body the list is, plus one; 0: none
  };

  const std::vector<Slot>& slots_of(const OpPlace&);
  std::string json_path(const Diagnostic&);

  const Plan& plan_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Slot>> slots_;  // by rank and thread block
};

}  // namespace chorale
