#pragma once
/// \file
/// A machine that plans are simulated for: a JSON file of times and rates, each with its unit in its key.
/// docs/simulation.md says how one is written.

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

/// From the text of a machine file: {"version": 1, "machine": "name", "parameters": {"issue_ns": 40, ...}},
/// with all parameters of machine.def; "notes" may say where they come from.
/// \param origin  what messages call the text: the file's name
/// \throws UsageError with the JSON path, the value and the remedy
Machine parse_machine(std::string_view text, const std::string& origin);
/// \throws UsageError as parse_machine(), std::runtime_error for a file that cannot be read
Machine load_machine(const std::string& path);

/// The text that parse_machine() reads.
std::string machine_text(const Machine&);

}  // namespace chorale
