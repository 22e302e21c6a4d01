#include "chorale/machine.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "chorale/did_you_mean.hpp"
#include "chorale/json_text.hpp"
#include "chorale/read_file.hpp"
#include "chorale/usage_error.hpp"

namespace chorale {
namespace {

using Json = nlohmann::ordered_json;

struct Parameter {
  std::string_view key, summary;
  double Machine::*value;
  bool rate;
};

constexpr Parameter parameters[] = {
#define CHORALE_NS(name, summary) {#name "_ns", summary, &Machine::name##_ns, false},
#define CHORALE_GB_S(name, summary) {#name "_gb_s", summary, &Machine::name##_gb_s, true},
#include "chorale/machine.def"
};

class Reader {
 public:
  explicit Reader(const std::string& origin) : origin_(origin) {}

  Machine read(std::string_view text) const {
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) {
      throw UsageError(origin_ +
                       ": this is not JSON: a machine is {\"version\": 1, \"machine\": \"name\", "
                       "\"parameters\": {\"issue_ns\": 40, ...}}");
    }
    if (!json.is_object()) wrong("/", json, "an object with version, machine and parameters is expected");
    for (const auto& [key, value] : json.items()) {
      static constexpr std::string_view known[] = {"version", "machine", "parameters", "notes"};
      if (std::find(std::begin(known), std::end(known), key) == std::end(known))
        wrong("/" + key, value, "the key is unknown" + did_you_mean(key, known));
    }
    const Json& version = member(json, "version");
    if (version != 1) wrong("/version", version, "1 is the version that this chorale reads");
    const Json& name = member(json, "machine");
    if (!name.is_string()) wrong("/machine", name, "a name in quotes is expected");
    Machine machine;
    machine.name = name.get<std::string>();
    read_parameters(member(json, "parameters"), machine);
    return machine;
  }

 private:
  [[noreturn]] void wrong(const std::string& path, const Json& value, const std::string& remedy) const {
    std::string shown = json_text(value);
    if (shown.size() > 60) shown = shown.substr(0, 57) + "...";
    throw UsageError(fmt::format("{}: {} is {}: {}", origin_, path, shown, remedy));
  }

  const Json& member(const Json& json, const char* key) const {
    const auto found = json.find(key);
    if (found == json.end())
      throw UsageError(fmt::format("{}: /{} is missing: a machine needs it", origin_, key));
    return *found;
  }

  void read_parameters(const Json& json, Machine& machine) const {
    if (!json.is_object()) wrong("/parameters", json, "an object of numbers is expected");
    std::vector<std::string_view> known;
    for (const Parameter& parameter : parameters) known.push_back(parameter.key);
    for (const auto& [key, value] : json.items()) {
      if (std::find(known.begin(), known.end(), key) == known.end())
        wrong("/parameters/" + key, value, "unknown parameter" + did_you_mean(key, known));
    }
    for (const Parameter& parameter : parameters) {
      const std::string path = fmt::format("/parameters/{}", parameter.key);
      const auto found = json.find(std::string(parameter.key));
      if (found == json.end()) {
        throw UsageError(fmt::format("{}: {} is missing: how many {} {}", origin_, path,
                                     parameter.rate ? "GB/s" : "nanoseconds it takes until",
                                     parameter.summary));
      }
      constexpr double most = 1e12;
      const double value = found->is_number() ? found->get<double>() : -1;
      if (parameter.rate ? !(value > 0 && value <= most) : !(value >= 0 && value <= most)) {
        wrong(path, *found,
              parameter.rate ? "a number of GB/s above 0 is expected, at most 1e12"
                             : "a number of nanoseconds from 0 to 1e12 is expected");
      }
      machine.*parameter.value = value;
    }
  }

  const std::string& origin_;
};

}  // namespace

Machine parse_machine(std::string_view text, const std::string& origin) { return Reader(origin).read(text); }

Machine load_machine(const std::string& path) {
  constexpr uint64_t most_bytes = 1 << 20;
  return parse_machine(read_plain_file(path, most_bytes), path);
}

std::string machine_text(const Machine& machine) {
  Json json{{"version", 1}, {"machine", machine.name}, {"parameters", Json::object()}};
  for (const Parameter& parameter : parameters)
    json["parameters"][std::string(parameter.key)] = machine.*parameter.value;
  return json_text(json, 2) + "\n";
}

}  // namespace chorale
