#pragma once
/// \file
/// A machine file describes the machine that plans are simulated on. It has times and rates in JSON, and each
/// key has its unit. docs/simulation.md says how to write one.

#include <string>
#include <string_view>

#include "chorale/topology.hpp"

namespace chorale {

/// Holds the parameters of a machine. Times are in nanoseconds and at least 0. Rates are in 10^9 bytes per
/// second and above 0.
struct Machine {
  std::string name;
#define CHORALE_NS(name, summary) double name##_ns = 0;
#define CHORALE_GB_S(name, summary) double name##_gb_s = 1;
#define CHORALE_COUNT(name, summary) double name = 1;
#include "chorale/machine.def"
  /// Says how the GPUs are connected. Without nodes, each GPU has one link to a switch that is never busy.
  Topology topology;

  /// Returns the names of the machine and of its topology: "NVIDIA H200, ring:4".
  std::string title() const;
};

/// Reads the text of a machine file:
///   {"version": 1, "machine": "name", "parameters": {"issue_ns": 40, ...}}
/// It must have all parameters of machine.def. "notes" may say where they come from. "topology" may be an
/// object as in topology files, or the name of a shipped topology.
/// \param origin  the name of the file, for messages
/// \throws UsageError with the JSON path, the value and the remedy
Machine parse_machine(std::string_view text, const std::string& origin);
/// Reads a machine file.
/// \throws UsageError as parse_machine()
/// \throws std::runtime_error if the file cannot be read
Machine load_machine(const std::string& path);

/// Returns a text that parse_machine() can read.
std::string machine_text(const Machine&);

}  // namespace chorale
