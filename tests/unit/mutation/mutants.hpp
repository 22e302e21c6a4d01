#pragma once
/// \file
/// Describes in words what operators do to small plans.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "chorale/renderer.hpp"
#include "tests/mutation/sites.hpp"
#include "tests/unit/compiler/helpers.hpp"
#include "tools/words.hpp"

namespace chorale::mutation {

/// Returns a plan of two ranks with two thread blocks each that do nothing yet.
inline Plan empty_plan() { return two_ranks(); }

inline const Operator& operator_named(const std::string& name) {
  for (const Operator& of : operators()) {
    if (of.name == name) return of;
  }
  ADD_FAILURE() << "no operator " << name;
  return operators()[0];
}

/// Returns the operations of all blocks in words, each after rank.block.
inline std::vector<std::string> lines_of(const Plan& plan) {
  std::vector<std::string> lines;
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& in : gpu.threadblocks) {
      uint32_t inside = 0;
      for (const Op& op : in.ops) {
        lines.push_back(std::to_string(gpu.id) + "." + std::to_string(in.id) + " " + (inside ? "  " : "") +
                        op_words(gpu, in, op));
        inside = op.body ? op.body : inside - (inside > 0);
      }
    }
  }
  return lines;
}

/// Returns the lines that only one of two lists has, by the longest common subsequence.
inline std::string difference(const std::vector<std::string>& left, const std::vector<std::string>& right) {
  std::vector<std::vector<size_t>> common(left.size() + 1, std::vector<size_t>(right.size() + 1));
  for (size_t l = left.size(); l-- > 0;) {
    for (size_t r = right.size(); r-- > 0;) {
      common[l][r] =
          left[l] == right[r] ? common[l + 1][r + 1] + 1 : std::max(common[l + 1][r], common[l][r + 1]);
    }
  }
  std::string text;
  for (size_t l = 0, r = 0; l < left.size() || r < right.size();) {
    if (l < left.size() && r < right.size() && left[l] == right[r]) {
      ++l, ++r;
    } else if (r == right.size() || (l < left.size() && common[l + 1][r] >= common[l][r + 1])) {
      text += "- " + left[l++] + "\n";
    } else {
      text += "+ " + right[r++] + "\n";
    }
  }
  return text;
}

/// Returns every mutant of an operator: the operations that it removes and adds, with a line between mutants.
/// `more` describes other changes. The plan is unchanged afterwards.
template <class More>
std::string mutants(const std::string& name, Plan plan, More&& more) {
  const std::string before = write(plan);
  const std::vector<std::string> lines = lines_of(plan);
  std::string text = "\n";
  for (const Site& site : sites(operator_named(name), plan)) {
    if (text.size() > 1) text += "\n";
    {
      Edit edit(plan);
      site.change(edit);
      text += difference(lines, lines_of(plan)) + more(std::as_const(plan));
      EXPECT_NE(write(plan), before) << name;
    }
    EXPECT_EQ(write(plan), before) << name;
  }
  return text;
}
inline std::string mutants(const std::string& name, const Plan& plan) {
  return mutants(name, plan, [](const Plan&) { return ""; });
}

}  // namespace chorale::mutation
