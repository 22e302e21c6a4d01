#pragma once
/// \file
/// Plan files and dumps show host schedules by the rows declared here. A row has the key, the member, and the
/// codec (codecs.hpp) that reads, writes and dumps the member. The rows of operations are in ops.def. Those
/// of tensors, flags, functions and the schedule itself are in rows.cpp.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/schedule/schedule.hpp"
#include "compiler/json/fields.hpp"

namespace chorale::schedule {

/// Holds the schedule that is being written, and the indent.
struct Writer {
  const Schedule& schedule;
  std::string indent;  ///< the beginning of a line: a line feed and the indent
};

/// Holds the dump so far, and the state on which the next line depends.
struct Dump {
  const Schedule& schedule;
  std::string out = {};
  std::string stream = "%main";  ///< stream of the current line; empty: not known
  size_t indent = 1;
  uint32_t numbers = 0;                              ///< number of numbered transfers and tokens
  std::map<uint32_t, uint32_t> tokens = {};          ///< numbers of tokens
  std::map<std::string, std::string> selected = {};  ///< the views of the current operation, by their names

  void line(const std::string& text) { out += std::string(2 * indent, ' ') + text + "\n"; }
  void operations(const std::vector<Op>&);
  void set_stream(const Stream&);
  /// Returns a line of OpInfo::text with the fields of an operation filled in.
  std::string filled(std::string_view text, const Op&);
};

/// Returns the only element of a list. If the list is not const, it gets an element when it has none.
template <class T>
T& only(std::vector<T>& list) {
  if (list.empty()) list.emplace_back();
  return list[0];
}
template <class T>
const T& only(const std::vector<T>& list) {
  return list[0];
}

/// Describes a member of `Of`.
template <class Of>
struct Row {
  std::string_view key;
  bool is_body = false;  ///< it is written after the others
  void (*read)(Schedule&, const json::Node&, Of&) = nullptr;
  std::string (*json)(const Writer&, const Of&) = nullptr;
  bool (*left_out)(const Of&) = nullptr;            ///< null: the key must be there
  std::string (*text)(Dump&, const Of&) = nullptr;  ///< null: dumps do not show it
};

/// Stands in OpInfo::text for the next number of a transfer.
inline constexpr std::string_view next_number = "#";

/// Removes and returns the part of a text before `end`, or the whole text if it has no `end`.
constexpr std::string_view take(std::string_view& text, char end) {
  const size_t size = text.find(end);
  const std::string_view part = text.substr(0, size);
  text.remove_prefix(size == text.npos ? text.size() : size + 1);
  return part;
}

/// Returns the row of a key; null if there is none.
template <class Of>
constexpr const Row<Of>* find(std::span<const Row<Of>> rows, std::string_view key) {
  for (const Row<Of>& row : rows)
    if (row.key == key) return &row;
  return nullptr;
}

/// Returns the rows of an operation, without "op" and with "at".
std::span<const Row<Op>> rows(OpKind);

/// Returns the rows of Tensor, Flag, Function or Schedule.
template <class Of>
std::span<const Row<Of>> rows();

/// Reads the members of an object that have rows.
template <class Of>
void read_rows(Schedule& schedule, json::Fields& fields, std::span<const Row<Of>> rows, Of& of) {
  for (const Row<Of>& row : rows) {
    if (!row.left_out) {
      row.read(schedule, fields.at(row.key), of);
    } else if (const std::optional<json::Node> node = fields.find(row.key)) {
      row.read(schedule, *node, of);
    }
  }
}

/// Refuses all keys except those in `known` and those of the rows.
template <class Of>
void refuse_others(const json::Fields& fields, std::span<const Row<Of>> rows,
                   std::vector<std::string_view> known = {}) {
  for (const Row<Of>& row : rows) known.push_back(row.key);
  fields.none(known);
}

/// Returns the members that have rows, each as `before`, key, `after` and value.
template <class Of>
std::string write_rows(const Writer& to, std::span<const Row<Of>> rows, const Of& of, std::string_view before,
                       std::string_view after = "\":") {
  std::string out;
  for (const bool bodies : {false, true}) {
    for (const Row<Of>& row : rows)
      if (row.is_body == bodies && !(row.left_out && row.left_out(of)))
        json::put(out, before, row.key, after, row.json(to, of));
  }
  return out;
}

}  // namespace chorale::schedule
