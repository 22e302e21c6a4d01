#include "chorale/dsl/registry.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <mutex>
#include <stdexcept>
#include <system_error>

#include "chorale/did_you_mean.hpp"
#include "chorale/schedule/schedule.hpp"
#include "dsl/recording.hpp"

namespace chorale::dsl {
namespace {

struct Entry {
  const Registration* owner;
  RegisteredProgram program;
  Factory factory;
  const void* module;  ///< base address of the executable or shared object that contains it
};

const void* module_of(Factory factory) {
  Dl_info found;
  return ::dladdr(reinterpret_cast<const void*>(factory), &found) ? found.dli_fbase : nullptr;
}

struct Registry {
  std::mutex mutex;  // any thread may load and unload shared objects
  std::vector<Entry> entries;
};

Registry& registry() {
  // It is never destroyed, because shared objects may still use it after the statics of this file are
  // destroyed.
  static Registry& all = *new Registry;
  return all;
}

Entry entry_of(std::string_view name) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::vector<std::string_view> names;
  const Entry* found = nullptr;
  for (const Entry& entry : all.entries) {
    names.push_back(entry.program.name);
    if (entry.program.name != name) continue;
    // Entries are in the order of loading, so a plugin hides earlier programs of the same name.
    if (found && found->module == entry.module) {
      const RegisteredProgram &one = found->program, &other = entry.program;
      throw std::invalid_argument(say("two programs are called '", name, "': at ", one.file, ":", one.line,
                                      " and at ", other.file, ":", other.line));
    }
    found = &entry;
  }
  if (!found) throw std::invalid_argument(say("there is no program '", name, "'", did_you_mean(name, names)));
  return *found;
}

}  // namespace

Registration::Registration(const char* name, Factory factory, Here at) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.entries.push_back({this, {name, base_name(at.file), at.line}, factory, module_of(factory)});
}

Registration::~Registration() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.entries, [this](const Entry& entry) { return entry.owner == this; });
}

std::vector<RegisteredProgram> programs() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::vector<RegisteredProgram> listed;
  for (const Entry& entry : all.entries) listed.push_back(entry.program);
  std::sort(listed.begin(), listed.end(),
            [](const auto& left, const auto& right) { return left.name < right.name; });
  return listed;
}

Description describe(std::string_view name) {
  const Entry entry = entry_of(name);
  Parameters with;
  try {
    entry.factory(with);
  } catch (const std::invalid_argument&) {
    // The program refuses even its defaults. The parameters that it declared before that are still useful.
  }
  return {entry.program.name, with.summary(), entry.program.file, entry.program.line, with.declared()};
}

namespace {

/// Refuses settings that are meant for parameters of a host schedule.
void refuse_of_schedule(const Plan& plan, const Parameters& with, const Parameters::Settings& settings) {
  if (!plan.extension.schedule) return;
  for (const schedule::Param& param : plan.extension.schedule->params) {
    const auto set = settings.find(param.name);
    const auto is_it = [&](const Parameter& one) { return one.name == param.name; };
    if (set == settings.end() || std::any_of(with.declared().begin(), with.declared().end(), is_it)) continue;
    throw std::invalid_argument(say("'", param.name,
                                    "' is a parameter of the schedule, which gets its value when "
                                    "it runs: --param ",
                                    param.name, "=", set->second));
  }
}

}  // namespace

Program build(std::string_view name, const Parameters::Settings& settings) {
  const Entry entry = entry_of(name);
  Parameters with(settings);
  Program program = entry.factory(with);
  refuse_of_schedule(Recording::of(program).plan(), with, settings);
  with.refuse_unknown(name);
  return program;
}

const std::string* Parameters::setting(Parameter wanted) {
  if (!wanted.bounds.was.empty() && !settings_.contains(wanted.name)) {
    if (auto renamed = settings_.extract(std::string(wanted.bounds.was))) {
      renamed.key() = wanted.name;
      settings_.insert(std::move(renamed));
    }
  }
  const auto same = [&](const Parameter& known) { return known.name == wanted.name; };
  const auto value = settings_.find(wanted.name);
  if (std::none_of(declared_.begin(), declared_.end(), same)) declared_.push_back(std::move(wanted));
  return value == settings_.end() ? nullptr : &value->second;
}

template <class Number>
Number Parameters::whole_number(std::string_view name, Number default_value, std::string_view description,
                                Bounds bounds) {
  const std::string* text = setting(
      {std::string(name), "integer", std::to_string(default_value), std::string(description), bounds});
  Number value = default_value;
  const auto refuse = [&](std::string found, std::string expected) {
    throw std::invalid_argument(say("parameter '", name, "' is ", found, ", but must be ", expected));
  };
  if (text) {
    const char* end = text->data() + text->size();
    const auto [stop, error] = std::from_chars(text->data(), end, value);
    if (error != std::errc() || stop != end) {
      refuse(say("'", *text, "'"), say("a whole number of at most ", std::numeric_limits<Number>::max()));
    }
  }
  if (std::cmp_less(value, bounds.min)) refuse(std::to_string(value), say("at least ", bounds.min));
  if (bounds.max != Bounds{}.max && std::cmp_greater(value, bounds.max)) {
    refuse(std::to_string(value), say("at most ", bounds.max));
  }
  return value;
}

int Parameters::operator()(std::string_view name, int default_value, std::string_view description,
                           Bounds bounds) {
  return whole_number(name, default_value, description, bounds);
}

int64_t Parameters::operator()(std::string_view name, int64_t default_value, std::string_view description,
                               Bounds bounds) {
  return whole_number(name, default_value, description, bounds);
}

uint64_t Parameters::operator()(std::string_view name, uint64_t default_value, std::string_view description,
                                Bounds bounds) {
  return whole_number(name, default_value, description, bounds);
}

bool Parameters::operator()(std::string_view name, bool default_value, std::string_view description) {
  const std::string* text = setting(
      {std::string(name), "boolean", default_value ? "true" : "false", std::string(description), Bounds{}});
  if (!text) return default_value;
  for (const char* word : {"true", "1", "yes", "on"}) {
    if (*text == word) return true;
  }
  for (const char* word : {"false", "0", "no", "off"}) {
    if (*text == word) return false;
  }
  throw std::invalid_argument(say("parameter '", name, "' is '", *text, "', but must be true or false"));
}

std::string Parameters::operator()(std::string_view name, const std::string& default_value,
                                   std::string_view description) {
  const std::string* text =
      setting({std::string(name), "text", default_value, std::string(description), Bounds{}});
  return text ? *text : default_value;
}

std::string Parameters::operator()(std::string_view name, const char* default_value,
                                   std::string_view description) {
  return (*this)(name, std::string(default_value), description);
}

Codec codec_of(Parameters& with) {
  std::vector<std::string_view> known;
  for (const CodecFormat format : all_codec_formats) known.emplace_back(codec_format_name(format));
  std::string words;
  for (const std::string_view one : known) words += say(words.empty() ? "" : ", ", one);
  const std::string format = with("format", "fp8_e4m3", say("format of encoded elements: ", words));
  const int block = with("block", 128, "elements that share a scale: a power of two",
                         {.min = Codec::least_block, .max = Codec::most_block});
  const auto found = std::find(known.begin(), known.end(), format);
  if (found == known.end())
    throw std::invalid_argument(
        say("format is '", format, "', but must be one of ", words, did_you_mean(format, known)));
  const Codec codec{all_codec_formats[found - known.begin()], uint32_t(block)};
  if (!codec.is_valid()) throw std::invalid_argument(say("block is ", block, ", but must be a power of two"));
  return codec;
}

void Parameters::refuse_unknown(std::string_view program) const {
  std::vector<std::string_view> known;
  for (const Parameter& parameter : declared_) known.push_back(parameter.name);
  for (const auto& [name, value] : settings_) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string listed;
    for (const std::string_view one : known) listed += say(listed.empty() ? "" : ", ", one);
    const std::string near = did_you_mean(name, known);
    throw std::invalid_argument(say(program, " has no parameter '", name, "'",
                                    !near.empty()   ? near
                                    : known.empty() ? "; it has none"
                                                    : "; it has: " + listed));
  }
}

}  // namespace chorale::dsl
