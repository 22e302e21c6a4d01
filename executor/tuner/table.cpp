#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>
#include <tuple>

#include "chorale/error.hpp"
#include "chorale/json_text.hpp"
#include "chorale/launch.hpp"
#include "chorale/tuner.hpp"
#include "chorale/write_error.hpp"
#include "object_reader.hpp"

namespace chorale {
namespace {

using Json = nlohmann::ordered_json;

auto all_but_size_and_limit(const TuneKey& key) {
  return std::tie(key.kind, key.world, key.dtype, key.rows, key.transport, key.device, key.backend,
                  key.variant);
}
bool before(const TuneKey& left, const TuneKey& right) {
  return std::tuple_cat(all_but_size_and_limit(left), std::tie(left.bytes, left.max_blocks)) <
         std::tuple_cat(all_but_size_and_limit(right), std::tie(right.bytes, right.max_blocks));
}

/// Returns whether a key is `covering`, or differs from it only in a lower limit of thread blocks.
bool is_covered(const TuneKey& key, const TuneKey& covering) {
  return key.bytes == covering.bytes && all_but_size_and_limit(key) == all_but_size_and_limit(covering) &&
         (covering.max_blocks == 0 || (key.max_blocks != 0 && key.max_blocks <= covering.max_blocks));
}

Json to_json(const TuneKey& key) {
  Json json = {{"kind", key.kind},     {"world", key.world},     {"dtype", dtype_name(key.dtype)},
               {"bytes", key.bytes},   {"rows", key.rows},       {"transport", key.transport},
               {"device", key.device}, {"backend", key.backend}, {"variant", key.variant}};
  if (key.max_blocks != 0) json["max_blocks"] = key.max_blocks;
  return json;
}

/// Writes only members that differ from their defaults.
Json to_json(const TuneConfig& config) {
  Json json = Json::object();
  const auto put = [&json](const char* name, const auto& value) {
    if (value != std::decay_t<decltype(value)>{}) json[name] = value;
  };
  put("blocks", config.blocks);
  put("threads", config.threads);
  put("slots", config.slots);
  put("unroll", config.unroll);
  put("instances", config.instances);
  put("mover", config.mover);
  put("order", config.order);
  put("style", config.style);
  put("plan", config.plan);
  put("packet", config.packet);
  return json;
}

TuneKey key_of(const Json& json, const std::string& where) {
  TuneKey key;
  ObjectReader reader(json, where);
  std::string dtype;
  reader.read("kind", key.kind, true);
  reader.read("world", key.world, true);
  reader.read("dtype", dtype, true);
  reader.read("bytes", key.bytes, true);
  reader.read("rows", key.rows);
  reader.read("transport", key.transport, true);
  reader.read("device", key.device);
  reader.read("backend", key.backend, true);
  reader.read("variant", key.variant);
  reader.read("max_blocks", key.max_blocks);
  reader.end();
  if (key.world < 1) throw UsageError(fmt::format("{}: 'world' is {}: it is at least 1", where, key.world));
  const auto at = std::find_if(std::begin(all_dtypes), std::end(all_dtypes),
                               [&](DType type) { return dtype == dtype_name(type); });
  if (at == std::end(all_dtypes)) throw UsageError(fmt::format("{}: 'dtype' is {}", where, dtype));
  key.dtype = *at;
  return key;
}

TuneConfig config_of(const Json& json, const std::string& where) {
  TuneConfig config;
  ObjectReader reader(json, where);
  reader.read("blocks", config.blocks);
  reader.read("threads", config.threads);
  reader.read("slots", config.slots);
  reader.read("unroll", config.unroll);
  reader.read("instances", config.instances);
  reader.read("mover", config.mover);
  reader.read("order", config.order);
  reader.read("style", config.style);
  reader.read("plan", config.plan);
  reader.read("packet", config.packet);
  reader.end();
  return config;
}

}  // namespace

void TuneKey::check() const {
  if (!default_hooks && variant.empty()) {
    throw UsageError(
        fmt::format("a {} with hooks that are not copies needs a variant that names these hooks: the "
                    "fastest configuration for copies may not be the fastest for them",
                    kind));
  }
}

LaunchConfig tuned_launch(const TuneConfig& config) {
  LaunchConfig launch;
  if (config.blocks != 0) launch.blocks = config.blocks;
  if (config.threads != 0) launch.threads = config.threads;
  return launch;
}

RendezvousOptions tuned_rings(const TuneConfig& config, RendezvousOptions otherwise) {
  if (config.slots != 0) otherwise.depth = config.slots;
  otherwise.max_channels = std::max(otherwise.max_channels, config.blocks);
  return otherwise;
}

void check_geometry(const Transport& transport, const TuneConfig& config) {
  if (config.slots != 0 && config.slots != transport.depth()) {
    throw UsageError(
        fmt::format("the configuration has {} slots, but this transport was made with {}, which cannot "
                    "change: make a transport with a depth of {}",
                    config.slots, transport.depth(), config.slots));
  }
  if (config.blocks > transport.max_channels()) {
    throw UsageError(
        fmt::format("the configuration has {} blocks, but this transport was made with {} channels, which "
                    "cannot change: make a transport with more max_channels",
                    config.blocks, transport.max_channels()));
  }
}

TuneTable TuneTable::load(const std::string& path) {
  return parse_file(path, [&](const std::string& text) { return parse(text); });
}

TuneTable TuneTable::parse(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw UsageError("this is not JSON, as a table of the tuner must be");
  ObjectReader top(json, "the table");
  uint64_t version = 0;
  top.read("version", version, true);
  if (version != 1)
    throw UsageError(fmt::format("the table: 'version' is {}, but only 1 is supported", version));
  TuneTable table;
  const Json& entries = top.array("entries");
  for (size_t at = 0; at < entries.size(); ++at) {
    const std::string where = fmt::format("/entries/{}", at);
    ObjectReader reader(entries[at], where);
    double ns = 0;
    reader.read("ns", ns, true);
    const TuneKey key = key_of(reader.child("key"), where + "/key");
    table.set(key, config_of(reader.child("config"), where + "/config"), ns);
    reader.end();
  }
  const Json& failures = top.array("failures");
  for (size_t at = 0; at < failures.size(); ++at) {
    const std::string where = fmt::format("/failures/{}", at);
    ObjectReader reader(failures[at], where);
    std::string why;
    reader.read("why", why, true);
    const TuneKey key = key_of(reader.child("key"), where + "/key");
    table.set_failure(key, config_of(reader.child("config"), where + "/config"), why);
    reader.end();
  }
  top.end();
  return table;
}

std::string TuneTable::text() const {
  // Each entry gets a separate line, so that diffs of tables are readable.
  std::string text = "{\"version\":1,\n\"entries\":[";
  const char* separator = "\n";
  for (const Entry& entry : entries_) {
    text += separator +
            json_text(Json{{"key", to_json(entry.key)}, {"config", to_json(entry.config)}, {"ns", entry.ns}});
    separator = ",\n";
  }
  text += "],\n\"failures\":[";
  separator = "\n";
  for (const Failure& failure : failures_) {
    text += separator +
            json_text(Json{
                {"key", to_json(failure.key)}, {"config", to_json(failure.config)}, {"why", failure.why}});
    separator = ",\n";
  }
  return text + "]}\n";
}

void TuneTable::save(const std::string& path) const {
  // We write a new file and rename it when it is complete. So readers always find a whole table, also after
  // the disk was full. A symbolic link stays a link.
  std::error_code none;
  const std::filesystem::path canonical = std::filesystem::canonical(path, none);
  const std::string target = none ? path : canonical.string();
  // We write directly to a device or a pipe, because a rename would replace it by a file.
  const bool replaced = !std::filesystem::is_other(std::filesystem::status(target, none));
  const std::string fresh = replaced ? fmt::format("{}.{}", target, ::getpid()) : target;
  const FileLimitAsError limited;
  errno = 0;
  std::ofstream file(fresh, std::ios::trunc);
  file << text();
  file.close();
  if (file && (!replaced || std::rename(fresh.c_str(), target.c_str()) == 0)) return;
  const int error = errno;
  if (replaced) std::remove(fresh.c_str());
  throw RunError(RunError::Reason::resources,
                 fmt::format("{}: cannot be written: {}", path, write_error(error)));
}

void TuneTable::set(const TuneKey& key, const TuneConfig& config, double ns) {
  key.check();
  if (!std::isfinite(ns) || ns < 0) {
    throw UsageError(
        fmt::format("{} ns for a {} of {} bytes: a time must be a number of 0 or more; record a failed "
                    "candidate with set_failure()",
                    ns, key.kind, key.bytes));
  }
  const auto at =
      std::lower_bound(entries_.begin(), entries_.end(), key,
                       [](const Entry& entry, const TuneKey& of) { return before(entry.key, of); });
  if (at != entries_.end() && !before(key, at->key)) {
    *at = {key, config, ns};
  } else {
    entries_.insert(at, {key, config, ns});
  }
}

void TuneTable::set_failure(const TuneKey& key, const TuneConfig& config, const std::string& why) {
  for (Failure& failure : failures_) {
    if (!before(failure.key, key) && !before(key, failure.key) && failure.config == config) {
      failure.why = why;
      return;
    }
  }
  failures_.push_back({key, config, why});
}

void TuneTable::forget_failures(const TuneKey& key) {
  std::erase_if(failures_, [&](const Failure& failure) {
    return !before(failure.key, key) && !before(key, failure.key);
  });
}

void TuneTable::forget_choice(const TuneKey& key) {
  std::erase_if(entries_,
                [&](const Entry& entry) { return !before(entry.key, key) && !before(key, entry.key); });
}

void TuneTable::take(const TuneKey& key, const TuneTable& other) {
  if (this == &other) return;
  const auto is_of_key = [&](const auto& held) { return is_covered(held.key, key); };
  std::erase_if(entries_, is_of_key);
  std::erase_if(failures_, is_of_key);
  for (const Entry& entry : other.entries_) {
    if (is_of_key(entry)) set(entry.key, entry.config, entry.ns);
  }
  for (const Failure& failure : other.failures_) {
    if (is_of_key(failure)) set_failure(failure.key, failure.config, failure.why);
  }
}

std::span<const TuneTable::Entry> TuneTable::entries(const TuneKey& key) const {
  key.check();
  const auto of_key =
      std::equal_range(entries_.begin(), entries_.end(), Entry{.key = key, .config = {}},
                       [](const Entry& left, const Entry& right) {
                         return all_but_size_and_limit(left.key) < all_but_size_and_limit(right.key);
                       });
  return {of_key.first, of_key.second};
}

std::vector<TuneTable::Failure> TuneTable::failures(const TuneKey& key) const {
  std::vector<Failure> found;
  std::copy_if(failures_.begin(), failures_.end(), std::back_inserter(found), [&](const Failure& failure) {
    return all_but_size_and_limit(failure.key) == all_but_size_and_limit(key);
  });
  return found;
}

TuneTable::Choice TuneTable::lookup(const TuneKey& key) const {
  const Entry* found = nullptr;
  for (const Entry& entry : entries(key)) {
    if (entry.key.bytes <= key.bytes && entry.key.max_blocks == key.max_blocks) found = &entry;
  }
  if (!found) return {};
  return {found->config, found->key.bytes == key.bytes ? Found::exact : Found::smaller, found->key.bytes};
}

}  // namespace chorale
