#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/usage_error.hpp"
#include "objects.hpp"

namespace py = pybind11;

namespace chorale::python {

Config config_of(const Settings& settings) {
  if (settings.empty()) return Config::load();
  constexpr std::string_view prefix = "CHORALE_";
  std::vector<std::string> entries;
  for (char** entry = environ; entry && *entry; ++entry) {
    if (std::string_view(*entry).starts_with(prefix)) entries.emplace_back(*entry);
  }
  for (const auto& [key, value] : settings) {  // the last entry of a name counts
    std::string name(prefix);
    for (const char letter : key) name += char(std::toupper(static_cast<unsigned char>(letter)));
    entries.push_back(name + "=" + value);
  }
  std::vector<const char*> pointers;
  for (const std::string& entry : entries) pointers.push_back(entry.c_str());
  pointers.push_back(nullptr);
  const char* const ini = std::getenv("CHORALE_CONFIG");
  try {
    return Config::read(ini ? ini : "", pointers.data());
  } catch (const UsageError& error) {
    const std::string_view text = error.what();
    for (size_t at = entries.size() - settings.size(); at < entries.size(); ++at) {
      const std::string variable = entries[at].substr(0, entries[at].find('='));
      if (text.find(variable) != text.npos)
        throw UsageError(fmt::format("the keyword stands for the setting {}: {}", variable, text));
    }
    throw;
  }
}

Config config_from(const py::kwargs& keywords) {
  Settings settings;
  for (const auto& [key, value] : keywords) {
    // Settings are spelled true and false.
    settings[key.cast<std::string>()] =
        py::isinstance<py::bool_>(value) ? (value.cast<bool>() ? "true" : "false") : py::str(value);
  }
  return config_of(settings);
}

}  // namespace chorale::python
