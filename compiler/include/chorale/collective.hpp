#pragma once
/// \file
/// What a collective is, by its name.

#include <string_view>

namespace chorale {

/// Whether it combines elements of several ranks.
constexpr bool collective_reduces(std::string_view collective) {
  return collective == "allreduce" || collective == "reducescatter";
}

}  // namespace chorale
