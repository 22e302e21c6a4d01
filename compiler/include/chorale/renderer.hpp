#pragma once
/// \file
/// Writes many findings as text.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "chorale/diagnostic.hpp"

namespace chorale {

/// Does what render() does for many findings of one plan, which outlives this and stays as it is. It finds
/// out once, not for every finding, where the operations of a thread block are in the plan file.
class Renderer {
 public:
  explicit Renderer(const Plan& plan) : plan_(plan) {}
  std::string operator()(const Diagnostic&, const std::string& severity = "error");

 private:
  /// Says where an operation is in the lists of a plan file. A pipeline holds its body as a list.
  struct Slot {
    uint32_t position;  ///< in the list
    uint32_t pipeline;  ///< the operation that the list is the body of, plus one; 0: none
  };

  const std::vector<Slot>& slots_of(const OpPlace&);
  std::string json_path(const Diagnostic&);

  const Plan& plan_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Slot>> slots_;  // by rank and thread block
};

}  // namespace chorale
