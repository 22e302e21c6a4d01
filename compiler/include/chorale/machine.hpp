#pragma once
/// \file
/// A machine file says what plans are simulated for: times and rates in JSON, each with its unit in its key.
/// docs/simulation.md says how to write one.

#include <string>
#include <string_view>

namespace chorale {

/// Times are in nanoseconds and at least 0, rates in 10^9 bytes a second and above 0.
struct Machine {
  std::string name;
#define CHORALE_NS(name, summary) double name##_ns = 0;
#define CHORALE_GB_S(name, summary) double name##_gb_s = 1;
#include "chorale/machine.def"
};

/// Reads the text of a machine file: {"version": 1, "machine": "name", "parameters": {"issue_ns": 40, ...}},
/// with all parameters of machine.def; "notes" may say where they come from.
/// \param origin  the name of the text in messages: that of the file
/// \throws UsageError with the JSON path, the value and the remedy
Machine parse_machine(std::string_view text, const std::string& origin);
/// Reads a machine file.
/// \throws UsageError as parse_machine()
/// \throws std::runtime_error if the file cannot be read
Machine load_machine(const std::string& path);

/// Returns a text that parse_machine() reads.
std::string machine_text(const Machine&);

}  // namespace chorale
