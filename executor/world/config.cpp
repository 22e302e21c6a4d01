#include "chorale/config.hpp"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/program_options.hpp>
#include <charconv>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "chorale/byte_count.hpp"
#include "chorale/did_you_mean.hpp"
#include "chorale/error.hpp"
#include "chorale/packet_form.hpp"
#include "chorale/read_file.hpp"
#include "executor/bootstrap/secret.hpp"

namespace chorale {
namespace {

namespace po = boost::program_options;
using namespace std::string_literals;

constexpr std::string_view prefix = "CHORALE_";
constexpr std::string_view config_variable = "CHORALE_CONFIG";
// These are read by other parts of Chorale, so they are neither settings nor mistakes.
constexpr std::string_view other_variables[] = {"CHORALE_NCCL_COPIES", "CHORALE_NCCL_FALLBACK",
                                                "CHORALE_NCCL_PLANS"};
constexpr uint64_t most_ini_bytes = 1 << 20;

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool parse_bool(const std::string& text) {
  for (const char* yes : {"1", "true", "yes", "on"}) {
    if (text == yes) return true;
  }
  for (const char* no : {"0", "false", "no", "off"}) {
    if (text == no) return false;
  }
  throw UsageError(fmt::format("'{}' is neither true nor false", text));
}

unsigned parse_number_to_4096(const std::string& text) {
  const auto number = parse_number<unsigned>(text);
  if (!number || *number > 4096) throw UsageError(fmt::format("'{}' is no number from 0 to 4096", text));
  return *number;
}

std::string parse_host(const std::string& text) {
  if (!is_host_name(text))
    throw UsageError(fmt::format("'{}' is no name of 1 to 200 printable characters", text));
  return text;
}

/// Parses the secret. Errors do not show the text, because it may be the secret itself.
std::string parse_secret(const std::string& text) {
  bootstrap::check_secret_setting(text);
  return text;
}

uint16_t parse_port(const std::string& text) {
  const auto port = parse_number<uint16_t>(text);
  if (!port) throw UsageError(fmt::format("'{}' is no number from 0 to 65535", text));
  return *port;
}

std::optional<uint64_t> parse_seed(const std::string& text) {
  if (text == "off") return std::nullopt;
  const auto seed = parse_number<uint64_t>(text);
  if (!seed) throw UsageError(fmt::format("'{}' is neither a 64-bit number nor 'off'", text));
  return seed;
}

/// Returns `text`, which must be one of `words`.
std::vector<std::string_view> packet_words() {
  std::vector<std::string_view> words{packet_form_auto};
  words.insert(words.end(), std::begin(packet_form_names), std::end(packet_form_names));
  return words;
}

std::string parse_word(const std::string& text, const std::vector<std::string_view>& words) {
  if (std::find(words.begin(), words.end(), text) != words.end()) return text;
  std::string list;
  for (const std::string_view word : words) list += (list.empty() ? "" : ", ") + std::string(word);
  throw UsageError(fmt::format("'{}' is none of {}{}", text, list, did_you_mean(text, words)));
}

std::string duration_text(std::chrono::nanoseconds time) {
  const int64_t count = time.count();
  if (count == 0) return "off";
  if (count % 1000000000 == 0) return fmt::format("{}s", count / 1000000000);
  if (count % 1000000 == 0) return fmt::format("{}ms", count / 1000000);
  if (count % 1000 == 0) return fmt::format("{}us", count / 1000);
  return fmt::format("{}ns", count);
}

/// Describes how one setting is read and shown. `rows` is the only list of settings.
struct Row {
  std::string_view name, help;
  void (*set)(Config& config, const std::string& text, const std::string& from);
  std::string (*show)(const Config& config);
  const std::string& (*from)(const Config& config);
};

#define CHORALE_SETTING(NAME, HELP, PARSE, SHOW) \
  Row { \
#NAME, HELP,                                                                                             \
        [](Config& config, const std::string& text, const std::string& from) {                               \
          config.NAME = PARSE;                                                                               \
          config.NAME.from = from;                                                                           \
        },                                                                                                   \
        [](const Config& config) -> std::string {                                                            \
          const auto& value = config.NAME.value;                                                             \
          return SHOW;                                                                                       \
        },                                                                                                   \
        [](const Config& config) -> const std::string& { return config.NAME.from; } \
  }

const std::array rows = {
    CHORALE_SETTING(timeout, "the limit of every wait", parse_duration(text), duration_text(value)),
    CHORALE_SETTING(workers, "threads that run blocks on the CPU; 0: one per core",
                    parse_number_to_4096(text), std::to_string(value)),
    CHORALE_SETTING(port, "the port where ranks of a launcher connect; 0: from MASTER_PORT", parse_port(text),
                    std::to_string(value)),
    CHORALE_SETTING(host, "splits a machine into hosts, by name; auto: detected", parse_host(text), value),
    CHORALE_SETTING(secret, "the secret with which ranks authenticate over TCP; or file:/path",
                    parse_secret(text), bootstrap::secret_setting_text(value)),
    CHORALE_SETTING(seed, "the seed of the deterministic scheduler", parse_seed(text),
                    value ? std::to_string(*value) : "off"s),
    CHORALE_SETTING(backend, "where plans run", parse_word(text, {"cpu", "cuda"}), value),
    CHORALE_SETTING(packet, "kind of packets; auto: by the size of the message",
                    parse_word(text, packet_words()), value),
    CHORALE_SETTING(switch_channels, "how GPUs run switch channels; multicast has not run on hardware",
                    parse_word(text, {"peer", "multicast"}), value),
    CHORALE_SETTING(log_level, "what goes to stderr",
                    parse_word(text, {"trace", "debug", "info", "warning", "error", "off"}), value),
    CHORALE_SETTING(trace, "launches of each plan that are timed", parse_number_to_4096(text),
                    std::to_string(value)),
    CHORALE_SETTING(bindings, "calls that an executor keeps bound; 0: any number", parse_number_to_4096(text),
                    std::to_string(value)),
    CHORALE_SETTING(round_scratch, "bytes of scratch beyond which a message runs in rounds; 0: never",
                    read_byte_count(text), byte_count_text(value)),
    CHORALE_SETTING(scratch, "bytes of scratch that an executor takes per rank; 0: any number",
                    read_byte_count(text), byte_count_text(value)),
    CHORALE_SETTING(max_blocks,
                    "most thread blocks of plans that are chosen, and of an exchange; 0: any number",
                    parse_number_to_4096(text), std::to_string(value)),
    CHORALE_SETTING(require_proof, "refuse plans without a proof", parse_bool(text),
                    value ? "true"s : "false"s),
};

#undef CHORALE_SETTING

/// Names the setting whose value is never shown.
constexpr std::string_view hidden = "secret";

/// \param shown  the name as its source spells it, for errors
void apply(Config& config, std::string_view name, const std::string& text, const std::string& shown,
           const std::string& from) {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& one) { return one.name == name; });
  try {
    row->set(config, text, from);
  } catch (const UsageError& error) {
    throw UsageError(name == hidden ? fmt::format("{}: {}", shown, error.what())
                                    : fmt::format("{} = {}: {}", shown, text, error.what()));
  }
}

void read_ini(Config& config, const std::string& path) {
  const std::string text = [&] {
    try {
      return read_plain_file(path, most_ini_bytes);
    } catch (const std::runtime_error& error) {
      throw UsageError(fmt::format("{}: {}", config_variable, error.what()));
    }
  }();
  // An error message with this text would end at the zero byte.
  if (text.find('\0') != text.npos)
    throw UsageError(fmt::format("{}: it contains a zero byte: save it as UTF-8, not as UTF-16", path));
  std::istringstream file(text);
  po::options_description known;
  std::vector<std::string_view> names;
  for (const Row& row : rows) {
    known.add_options()(std::string(row.name).c_str(), po::value<std::string>(),
                        std::string(row.help).c_str());
    names.push_back(row.name);
  }
  const auto parsed = [&] {
    try {
      return po::parse_config_file(file, known, true);
    } catch (const po::error& error) {
      // Boost's message would show the line, and so the secret.
      if (std::string_view(error.what()).find(hidden) != std::string_view::npos)
        throw UsageError(fmt::format("{}: a line with '{}' is not '{} = value'", path, hidden, hidden));
      throw UsageError(fmt::format("{}: {}", path, error.what()));
    }
  }();
  std::map<std::string, std::string> seen;
  for (const po::option& option : parsed.options) {
    if (option.unregistered) {
      const size_t dot = option.string_key.rfind('.');
      throw UsageError(fmt::format("{}: unknown setting '{}'{}{}", path, option.string_key,
                                   did_you_mean(option.string_key.substr(dot + 1), names),
                                   dot == std::string::npos ? "" : " Settings are not in a [section]"));
    }
    const std::string& value = option.value.at(0);
    const auto [first, fresh] = seen.emplace(option.string_key, value);
    if (!fresh && option.string_key == hidden)
      throw UsageError(fmt::format("{}: {} is set twice: keep one of the lines", path, hidden));
    if (!fresh) {
      throw UsageError(fmt::format("{}: {} is set twice, to '{}' and to '{}': keep one of the lines", path,
                                   option.string_key, first->second, value));
    }
    apply(config, option.string_key, value, fmt::format("{}: {}", path, option.string_key), path);
  }
  if (config.secret.from == path && bootstrap::secret_setting_text(config.secret.value) == "set")
    bootstrap::require_private_file(path);
}

std::string upper(std::string_view name) {
  std::string text(prefix);
  for (const char letter : name) text += char(std::toupper(static_cast<unsigned char>(letter)));
  return text;
}

void read_environment(Config& config, const char* const* environment) {
  std::vector<std::string> variables{std::string(config_variable)};
  for (const Row& row : rows) variables.push_back(upper(row.name));
  std::vector<std::string_view> known(variables.begin(), variables.end());
  known.insert(known.end(), std::begin(other_variables), std::end(other_variables));
  for (; environment && *environment; ++environment) {
    const std::string_view entry = *environment;
    const size_t equals = entry.find('=');
    if (!entry.starts_with(prefix) || equals == entry.npos) continue;
    const std::string variable(entry.substr(0, equals));
    const auto found = std::find(known.begin(), known.end(), variable);
    if (found == known.end()) {
      throw UsageError(
          fmt::format("unknown environment variable {}{}", variable, did_you_mean(variable, known)));
    }
    const size_t row = size_t(found - known.begin()) - 1;
    if (variable == config_variable || row >= std::size(rows)) continue;
    apply(config, rows[row].name, std::string(entry.substr(equals + 1)), variable, variable);
  }
}

}  // namespace

std::chrono::nanoseconds parse_duration(const std::string& text) {
  if (text == "off") return std::chrono::nanoseconds(0);
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = parse_number<int64_t>(std::string_view(text).substr(0, digits));
  const std::string_view unit = std::string_view(text).substr(digits);
  constexpr std::pair<std::string_view, int64_t> units[] = {
      {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {"min", 60000000000}};
  for (const auto& [name, nanoseconds] : units) {
    // 0 is refused, because it would mean "no limit", and users might expect the opposite.
    if (number && *number > 0 && unit == name && *number <= INT64_MAX / nanoseconds) {
      return std::chrono::nanoseconds(*number * nanoseconds);
    }
  }
  throw UsageError(fmt::format(
      "'{}' is no duration: it should be like 30s, 500ms, 20us, 7ns or 2min, above 0, or 'off'", text));
}

Config Config::read(const std::string& ini, const char* const* environment) {
  Config config;
  if (!ini.empty()) read_ini(config, ini);
  read_environment(config, environment);
  return config;
}

Config Config::load() {
  const char* const ini = std::getenv(std::string(config_variable).c_str());
  Config config = read(ini ? ini : "", environ);
  static const std::shared_ptr<spdlog::logger> log = [] {
    // Another copy of this library in the process may have made the logger already, for example libchorale.so
    // or an extension of a framework.
    if (auto known = spdlog::get("chorale")) return known;
    auto made = spdlog::stderr_color_mt("chorale");
    made->set_pattern("[%T.%e %^%l%$] chorale: %v");
    return made;
  }();
  log->set_level(spdlog::level::from_str(config.log_level.value));
  for (const Row& row : rows) {
    if (row.from(config) != "default")
      log->debug("{} = {}  ({})", row.name, row.show(config), row.from(config));
  }
  return config;
}

std::string Config::describe() const {
  std::string text;
  for (const Row& row : rows)
    text += fmt::format("{} = {}  ({})\n", row.name, row.show(*this), row.from(*this));
  return text;
}

}  // namespace chorale
