#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cctype>
#include <chorale/error.hpp>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "objects.hpp"
#include "status.hpp"
#include "values.hpp"

namespace chorale::c {
namespace {

constexpr std::string_view prefix = "CHORALE_";

/// Calls Config::read() on the environment followed by these overrides. The last entry of a name counts.
Config read_with(const ConfigObject& object, const std::map<std::string, std::string>& overrides) {
  std::vector<std::string> entries = object.environment;
  for (const auto& [name, value] : overrides) entries.push_back(name + "=" + value);
  std::vector<const char*> pointers;
  for (const std::string& entry : entries) pointers.push_back(entry.c_str());
  pointers.push_back(nullptr);
  return Config::read(object.ini, pointers.data());
}

/// Checks the name of a setting and returns it.
/// \throws UsageError if no setting can have this name
std::string variable(const char* name) {
  const std::string_view word = text("name", name);
  if (!word.starts_with(prefix) || word.find('=') != word.npos) {
    throw UsageError(
        fmt::format("'{}' is not the name of a setting: settings are named as in the environment, such as "
                    "CHORALE_TIMEOUT",
                    word));
  }
  return std::string(word);
}

/// Returns the value in a line of Config::describe(), "timeout = 10s  (default)". Returns nothing if there is
/// no such setting.
std::optional<std::string> described(const Config& config, const std::string& variable) {
  std::string name = variable.substr(prefix.size());
  for (char& letter : name) letter = char(std::tolower(static_cast<unsigned char>(letter)));
  const std::string all = "\n" + config.describe(), start = "\n" + name + " = ";
  const size_t at = all.find(start);
  if (at == all.npos) return std::nullopt;
  const size_t begin = at + start.size();
  return all.substr(begin, all.rfind("  (", all.find('\n', begin)) - begin);
}

}  // namespace

Config config_of(const chorale_config* config) {
  if (!config) return Config::load();
  const std::shared_ptr<ConfigObject> object = get(config);
  const std::lock_guard lock(object->mutex);
  return object->config;
}

}  // namespace chorale::c

using namespace chorale;
using namespace chorale::c;

chorale_status chorale_config_load(chorale_config** config) {
  return guarded(__func__, [&] {
    chorale_config*& out = result("config", config);
    const auto object = std::make_shared<ConfigObject>();
    object->config = Config::load();
    if (const char* const ini = std::getenv("CHORALE_CONFIG")) object->ini = ini;
    for (char** entry = environ; entry && *entry; ++entry) {
      if (std::string_view(*entry).starts_with(prefix)) object->environment.emplace_back(*entry);
    }
    out = open<chorale_config>(object);
  });
}

chorale_status chorale_config_set(chorale_config* config, const char* name, const char* value) {
  return guarded(__func__, [&] {
    const std::shared_ptr<ConfigObject> object = get(config);
    const std::string known = variable(name), word = text("value", value);
    if (known == "CHORALE_CONFIG")
      throw UsageError(
          "CHORALE_CONFIG names the ini file that chorale_config_load() has read: set it before that");
    const std::lock_guard lock(object->mutex);
    std::map<std::string, std::string> overrides = object->overrides;
    overrides[known] = word;
    object->config = read_with(*object, overrides);
    object->overrides = std::move(overrides);
    if (known == "CHORALE_LOG_LEVEL") {
      if (const auto log = spdlog::get("chorale"))
        log->set_level(spdlog::level::from_str(object->config.log_level.value));
    }
  });
}

chorale_status chorale_config_get(chorale_config* config, const char* name, char** text) {
  return guarded(__func__, [&] {
    char*& out = result("text", text);
    const std::shared_ptr<ConfigObject> object = get(config);
    const std::string known = variable(name);
    const std::lock_guard lock(object->mutex);
    const std::optional<std::string> value = described(object->config, known);
    if (!value) {
      const std::string entry = known + "=";
      const char* const entries[] = {entry.c_str(), nullptr};
      Config::read("", entries);  // lists the names that exist
      throw UsageError(fmt::format("{} has no value", known));
    }
    out = give_text(*value);
  });
}

chorale_status chorale_config_describe(chorale_config* config, char** text) {
  return guarded(__func__, [&] {
    char*& out = result("text", text);
    const std::shared_ptr<ConfigObject> object = get(config);
    const std::lock_guard lock(object->mutex);
    out = give_text(object->config.describe());
  });
}

chorale_status chorale_config_close(chorale_config* config) {
  return guarded(__func__, [&] { take(config); });
}
