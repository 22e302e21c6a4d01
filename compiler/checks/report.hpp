#pragma once
/// \file
/// How checks say what they found.

#include <string>

#include "chorale/diagnostic.hpp"

namespace chorale {

/// Adds the findings of one check.
class Report {
 public:
  Report(const char* check, Diagnostics& out) : check_(check), out_(out) {}

  Diagnostic& add(std::optional<OpPlace> at, std::string text, std::string help = {}) {
    return out_.emplace_back(Diagnostic{check_, {}, at, std::move(text), {}, std::move(help)});
  }

 private:
  const char* check_;
  Diagnostics& out_;
};

inline std::string number(uint64_t value) { return std::to_string(value); }

/// "1 time", "2 times"
inline std::string count(uint64_t value, const std::string& noun) {
  return number(value) + " " + noun + (value == 1 ? "" : "s");
}

inline std::string rank_name(uint64_t rank) { return "rank " + number(rank); }

}  // namespace chorale
