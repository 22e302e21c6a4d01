#include "chorale/machine.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "chorale/json_text.hpp"
#include "chorale/read_file.hpp"
#include "chorale/usage_error.hpp"
#include "compiler/topology/reading.hpp"

namespace chorale {
namespace {

using topology::Json;
using topology::Value;

struct Parameter {
  enum class Unit { ns, gb_s, one };
  std::string_view key, summary;
  double Machine::*value;
  Unit unit;
};

constexpr Parameter parameters[] = {
#define CHORALE_NS(name, summary) {#name "_ns", summary, &Machine::name##_ns, Parameter::Unit::ns},
#define CHORALE_GB_S(name, summary) {#name "_gb_s", summary, &Machine::name##_gb_s, Parameter::Unit::gb_s},
#define CHORALE_COUNT(name, summary) {#name, summary, &Machine::name, Parameter::Unit::one},
#include "chorale/machine.def"
};

void read_parameters(const Value& value, Machine& machine) {
  if (!value.json.is_object()) value.refuse("an object of numbers is expected");
  std::vector<std::string_view> known;
  for (const Parameter& parameter : parameters) known.push_back(parameter.key);
  value.only(known, "unknown parameter");
  for (const Parameter& parameter : parameters) {
    // By unit: what the number counts, and what is expected.
    static constexpr std::string_view counted[] = {" nanoseconds it takes until", " GB/s", ""};
    static constexpr std::string_view expected[] = {"a number of nanoseconds from 0 to 1e12 is expected",
                                                    "a number of GB/s above 0 is expected, at most 1e12",
                                                    "a number above 0 is expected, at most 1e12"};
    const size_t unit = size_t(parameter.unit);
    const Value found =
        value.need(parameter.key, fmt::format("how many{} {}", counted[unit], parameter.summary));
    constexpr double most = 1e12;
    const double number = found.json.is_number() ? found.json.get<double>() : -1;
    const bool enough = parameter.unit == Parameter::Unit::ns ? number >= 0 : number > 0;
    if (!enough || number > most) found.refuse(std::string(expected[unit]));
    machine.*parameter.value = number;
  }
}

/// Reads the topology of a machine: an object, or the name of a shipped one.
Topology read_topology(const Value& value) {
  if (!value.json.is_string()) return topology::read(value);
  try {
    return topology::shipped(value.json.get<std::string>());
  } catch (const UsageError& error) {
    value.refuse(error.what());
  }
}

Machine read(const Value& file) {
  if (!file.json.is_object()) file.refuse("an object with version, machine and parameters is expected");
  static constexpr std::string_view known[] = {"version", "machine", "parameters", "topology", "notes"};
  file.only(known);
  const std::string needed = "a machine needs it";
  const Value version = file.need("version", needed);
  if (version.json != 1) version.refuse("1 is the version that this chorale reads");
  Machine machine;
  machine.name = file.need("machine", needed).text("a name in quotes is expected");
  read_parameters(file.need("parameters", needed), machine);
  if (file.has("topology")) machine.topology = read_topology(file.at("topology"));
  return machine;
}

}  // namespace

std::string Machine::title() const { return topology.nodes.empty() ? name : name + ", " + topology.name; }

Machine parse_machine(std::string_view text, const std::string& origin) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    throw UsageError(origin +
                     ": this is not JSON: a machine is {\"version\": 1, \"machine\": \"name\", "
                     "\"parameters\": {\"issue_ns\": 40, ...}}");
  }
  return read({json, origin, ""});
}

Machine load_machine(const std::string& path) {
  return parse_machine(read_plain_file(path, topology::most_file_bytes), path);
}

std::string machine_text(const Machine& machine) {
  Json json{{"version", 1}, {"machine", machine.name}, {"parameters", Json::object()}};
  for (const Parameter& parameter : parameters)
    json["parameters"][std::string(parameter.key)] = machine.*parameter.value;
  if (!machine.topology.nodes.empty()) json["topology"] = Json::parse(topology_text(machine.topology));
  return json_text(json, 2) + "\n";
}

}  // namespace chorale
