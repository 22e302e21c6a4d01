#pragma once
// These helpers are shared by the tests of the adversarial machine.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "chorale/adversary.hpp"
#include "chorale/dsl.hpp"
#include "chorale/json.hpp"

namespace chorale {

/// Returns the plan, whatever the checks find in it.
inline Plan plan_of(const dsl::Program& program) { return program.compile().plan; }

/// Returns the names of the shipped plans whose name ends in `_<ranks>.json`.
inline std::vector<std::string> shipped(const std::string& ranks) {
  std::vector<std::string> found;
  for (const auto& file : std::filesystem::directory_iterator(CHORALE_SOURCE_DIR "/plans/shipped")) {
    if (file.path().string().ends_with("_" + ranks + ".json")) found.push_back(file.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Reads a shipped plan.
inline Plan shipped_plan(const std::string& name) {
  return load(CHORALE_SOURCE_DIR "/plans/shipped/" + name + ".json");
}

/// Turns every `from` of a plan into `to`, which takes the same operands.
inline Plan replaced(Plan plan, Opcode from, Opcode to) {
  for (Gpu& gpu : plan.gpus) {
    for (ThreadBlock& block : gpu.threadblocks) {
      for (Op& op : block.ops) {
        if (op.code == from) op.code = to;
      }
    }
  }
  return plan;
}

}  // namespace chorale
