#pragma once
/// \file
/// These functions read and write host schedules in plan files: the section "host" of the key "chorale".

#include <string>
#include <string_view>

#include "chorale/host/schedule.hpp"
#include "compiler/json/fields.hpp"

namespace chorale::host {

/// Lists the keys of operations, by Field. Two fields of one operation never share a key.
inline constexpr std::string_view field_keys[] = {
    "lane",  "t",    "dst",  "src",    "writes", "reads", "peer",  "tag",   "via",   "do",
    "token", "kind", "root", "reduce", "plan",   "fn",    "attrs", "value", "on",    "lanes",
    "i",     "lo",   "hi",   "p",      "body",   "then",  "else",  "flag",  "index", "text"};

/// \throws PlanError
Schedule read_schedule(const json::Node&);

/// Appends the object, one operation per line. `indent` is that of the line on which the object begins.
void write_schedule(std::string& out, const Schedule&, const std::string& indent);

}  // namespace chorale::host
