#pragma once
/// \file
/// A Report collects the findings of a check. The functions here write parts of their texts.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "chorale/diagnostic.hpp"

namespace chorale {

/// Adds the findings of one check.
class Report {
 public:
  Report(const char* check, Diagnostics& out) : check_(check), out_(out) {}

  /// \param path  see Diagnostic::path
  Diagnostic& add(std::optional<OpPlace> at, std::string text, std::string help = {}, std::string path = {}) {
    return out_.emplace_back(
        Diagnostic{check_, {}, at, std::move(text), {}, std::move(help), std::move(path)});
  }

  /// Adds a finding about a part of the plan other than an operation.
  Diagnostic& add_at(std::string path, std::string text, std::string help = {}) {
    return add({}, std::move(text), std::move(help), std::move(path));
  }

 private:
  const char* check_;
  Diagnostics& out_;
};

inline std::string number(uint64_t value) { return std::to_string(value); }

/// Writes a number with its noun: "1 time", "2 times".
inline std::string count(uint64_t value, const std::string& noun) {
  return number(value) + " " + noun + (value == 1 ? "" : "s");
}

/// Joins keys and positions to a JSON path: "/gpus/0/channels/1".
template <class... Parts>
std::string path_of(const Parts&... parts) {
  std::string path;
  const auto append = [&](const auto& part) {
    path += '/';
    if constexpr (std::is_convertible_v<decltype(part), std::string_view>)
      path += part;
    else
      path += std::to_string(part);
  };
  (append(parts), ...);
  return path;
}

/// Returns the key of a buffer's chunk count: "input_chunks".
inline std::string chunks_key(size_t buffer) { return std::string(buffer_names[buffer]) + "_chunks"; }

/// Returns where an operand is within its operation: "src_buff/0".
inline std::string operand_path(const ThreadBlock& block, const Op& op, const Operand& operand) {
  const size_t position = size_t(&operand - block.sources(op).data());
  return position < op.sources ? "src_buff/" + std::to_string(position)
                               : "dst_buff/" + std::to_string(position - op.sources);
}

/// Limits the parts of lists in findings, so that their lines stay readable with many ranks.
inline constexpr size_t most_told = 4;

/// Joins words by commas. A list of more than `most` words and one more ends with "and 5 more".
inline std::string list_words(const std::vector<std::string>& words, size_t most = SIZE_MAX) {
  const size_t told = !words.empty() && words.size() - 1 > most ? most : words.size();
  std::string text;
  for (size_t at = 0; at < told; ++at) text += (at ? ", " : "") + words[at];
  return told < words.size() ? text + " and " + number(words.size() - told) + " more" : text;
}

inline std::string rank_name(uint64_t rank) { return "rank " + number(rank); }

}  // namespace chorale
