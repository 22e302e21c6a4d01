#include "plans.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chorale/make_plan.hpp>
#include <chorale/own_plans.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "log.hpp"
#include "outcome.hpp"

namespace chorale::nccl {
namespace {

constexpr const char* variable = "CHORALE_NCCL_PLANS";

/// Returns the folder of plans and tables that belongs to the installation of this library; "" if it was not
/// installed.
std::string data_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&variable), &info) == 0 || !info.dli_fname) return "";
  std::error_code none;
  const std::filesystem::path library = std::filesystem::canonical(info.dli_fname, none);
  const std::filesystem::path folder = library.parent_path() / CHORALE_NCCL_DATA;
  return std::filesystem::is_directory(folder, none) ? folder.lexically_normal().string() : "";
}

Plan made(const std::string& name, int ranks) { return make_plan(name, ranks); }

/// Prints a line to the log if the process has not printed it before.
void log_once(const std::string& text) {
  static std::mutex& mutex = *new std::mutex;
  static auto& known = *new std::set<std::string>;
  const std::lock_guard<std::mutex> lock(mutex);
  if (log::prints(log::Level::info, log::Subsystem::env) && known.insert(text).second)
    log::line(log::Level::info, text, log::Subsystem::env);
}

/// Reads the file of CHORALE_NCCL_PLANS.
OwnPlans own_plans(int ranks) {
  const char* const path = std::getenv(variable);
  if (!path || !*path) return {};
  try {
    OwnPlans own = read_own_plans(path, ranks, made);
    log_once(fmt::format("{}={} has {} plan{} for {} ranks", variable, path, own.plans.size(),
                         own.plans.size() == 1 ? "" : "s", ranks));
    for (const std::string& line : own.left_out) log_once(fmt::format("{}={}: {}", variable, path, line));
    return own;
  } catch (const UsageError& error) {
    throw CallError(ncclInvalidUsage, fmt::format("{} cannot be used: {}", variable, error.what()));
  }
}

/// Returns the first line of `text` that `other` does not have at the same place; "no more plans" if there is
/// none.
std::string first_other_line(const std::string& text, const std::string& other) {
  size_t begin = 0;
  for (size_t at = 0; at < text.size() && at < other.size() && text[at] == other[at]; ++at) {
    if (text[at] == '\n') begin = at + 1;
  }
  const std::string line = text.substr(begin, text.find('\n', begin) - begin);
  return line.empty() ? "no more plans" : line;
}

/// Throws on all ranks if one has an error, or if their digests differ. Collective.
void agree(World& world, const Outcome& outcome, const std::string& digest) {
  const std::string mine = (outcome.good() ? "=" : "!") + (outcome.good() ? digest : outcome.sentence);
  std::vector<std::string> all;
  for (const std::vector<std::byte>& bytes : world.allgather(std::as_bytes(std::span(mine))))
    all.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!outcome.good()) throw CallError(outcome.result, outcome.sentence);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].starts_with('!'))
      throw CallError(ncclInvalidUsage, fmt::format("rank {}: {}", rank, all[rank].substr(1)));
  }
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    const std::string first = all[0].substr(1), other = all[rank].substr(1);
    throw CallError(
        ncclInvalidUsage,
        fmt::format("{} differs between ranks, so they would run different plans. Rank 0 has: {}. "
                    "Rank {} has: {}. Set it to files with the same plans on all ranks",
                    variable, first_other_line(first, other), rank, first_other_line(other, first)));
  }
}

/// Returns the lowest of the ranks' limits; 0 if no rank has one. Collective.
uint32_t lowest_limit(World& world, uint32_t mine) {
  uint32_t lowest = mine;
  for (const std::vector<std::byte>& bytes : world.allgather(std::as_bytes(std::span(&mine, 1)))) {
    uint32_t other = 0;
    std::memcpy(&other, bytes.data(), std::min(sizeof other, bytes.size()));
    if (other != 0 && (lowest == 0 || other < lowest)) lowest = other;
  }
  return lowest;
}

}  // namespace

TunedPlans plans_for(World& world, const std::string& backend, const std::string& device,
                     uint32_t max_blocks) {
  const TunedFor machine{.ranks = world.ranks(),
                         .backend = backend,
                         .device = device,
                         .max_blocks = lowest_limit(world, max_blocks)};
  std::optional<TunedPlans> plans;
  std::string digest;
  const Outcome outcome = outcome_of([&] {
    const OwnPlans own = own_plans(world.ranks());
    digest = own.digest();
    plans.emplace(TunedPlans::installed(data_folder(), machine, made));
    for (const OwnPlan& one : own.plans) plans->use(one);
  });
  agree(world, outcome, digest);
  return std::move(*plans);
}

bool PlanLog::add(const PlannedCall& call, const std::string& way) {
  return known_.emplace(call.function, call.type, int(std::bit_width(call.bytes)), call.in_place, way).second;
}

}  // namespace chorale::nccl
