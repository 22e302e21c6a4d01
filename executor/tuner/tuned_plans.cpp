#include "chorale/tuned_plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

#include "chorale/collective.hpp"
#include "chorale/json.hpp"
#include "chorale/proof.hpp"
#include "default_plans.hpp"

namespace chorale {

namespace {
/// Returns all types: `dtype` first, then types with elements of the same size, then the others.
std::vector<DType> nearest_types(DType dtype) {
  std::vector<DType> types(std::begin(all_dtypes), std::end(all_dtypes));
  const auto distance = [dtype](DType other) {
    return other == dtype ? 0 : dtype_size(other) == dtype_size(dtype) ? 1 : 2;
  };
  std::stable_sort(types.begin(), types.end(),
                   [&](DType left, DType right) { return distance(left) < distance(right); });
  return types;
}

constexpr const char* remedy = "chorale tune makes a table, and chorale compile makes the plans";
}  // namespace

std::string table_name(const TunedFor& machine) {
  std::string name = machine.device.empty() ? machine.backend : machine.device;
  for (char& letter : name) {
    if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
  }
  return name + ".json";
}

TuneKey plan_key(const TunedFor& machine, const std::string& collective, uint64_t bytes, DType dtype,
                 bool in_place) {
  TuneKey key;
  key.kind = collective;
  key.world = machine.ranks;
  key.dtype = dtype;
  key.bytes = bytes;
  key.transport = "plan";
  key.device = machine.device;
  key.backend = machine.backend;
  key.variant = in_place ? "in place" : "";
  if (machine.rank_order && collective_reduces(collective))
    key.variant += in_place ? ", rank order" : "rank order";
  return key;
}

TunedPlans::TunedPlans(TuneTable table, std::string folder, TunedFor machine, Make make)
    : table_(std::move(table)),
      folder_(std::move(folder)),
      machine_(std::move(machine)),
      make_(std::move(make)) {}

TunedPlans::Choice TunedPlans::choose(const std::string& collective, uint64_t bytes, DType dtype) const {
  Choice choice;
  choice.collective = collective;
  TuneTable::Choice chosen;
  for (const DType one : nearest_types(dtype)) {
    chosen = table_.lookup(plan_key(machine_, collective, bytes, one));
    choice.dtype = one;
    if (chosen.found != TuneTable::Found::none) break;
  }
  choice.found = chosen.found;
  choice.bytes = chosen.bytes;
  choice.name = chosen.config.plan;
  if (chosen.found == TuneTable::Found::none) {
    choice.name = default_name(collective, bytes);
  } else if (choice.name.empty()) {
    throw UsageError(
        fmt::format("the table's entry for {} of {} bytes names no plan", collective, chosen.bytes));
  } else if (choice.name.find('/') != std::string::npos) {
    throw UsageError(
        fmt::format("the table names '{}' for {} of {} bytes: it should be the name of a plan in {}, "
                    "without '/'",
                    choice.name, collective, chosen.bytes, folder_));
  }
  if (const std::string& packet = chosen.config.packet; !packet.empty()) {
    choice.packet = packet_form_of(packet);
    if (!choice.packet) {
      throw UsageError(
          fmt::format("the table has the packet form '{}' for {} of {} bytes, but the forms are {}", packet,
                      collective, chosen.bytes, fmt::join(packet_form_names, ", ")));
    }
  }
  choice.file = file_of(choice.name);
  return choice;
}

std::string TunedPlans::default_name(const std::string& collective, uint64_t bytes) const {
  const std::vector<std::string> names = default_plans(machine_, collective, bytes);
  if (make_) return names.front();
  for (const std::string& name : names) {
    std::error_code none;
    if (std::filesystem::exists(file_of(name), none)) return name;
  }
  return names.back();
}

std::string TunedPlans::file_of(const std::string& name) const {
  return fmt::format("{}/{}_{}.json", folder_, name, machine_.ranks);
}

const Plan& TunedPlans::plan(const Choice& choice) {
  const Plan& plan = read_once(choice);
  // A plan of another collective would compute a wrong result.
  if (plan.collective != choice.collective) {
    throw UsageError(fmt::format("{} names {} for {}, but the plan in {} is for {}: {}",
                                 choice.found == TuneTable::Found::none ? "the default" : "the table",
                                 choice.name, choice.collective, choice.file, plan.collective, remedy));
  }
  if (plan.ranks() != uint32_t(machine_.ranks)) {
    throw UsageError(fmt::format("{} should be a plan of {} ranks, but it is for {}: {}", choice.file,
                                 machine_.ranks, plan.ranks(), remedy));
  }
  return plan;
}

const Plan& TunedPlans::read_once(const Choice& choice) {
  const auto known = plans_.find(choice.file);
  if (known != plans_.end()) return known->second;
  std::error_code no_file;
  const bool there = std::filesystem::exists(choice.file, no_file);
  if (!there && !make_) {
    throw UsageError(
        fmt::format("there is no {} of {} ranks in {}: chorale compile {} --set ranks={} -o {} makes it",
                    choice.name, machine_.ranks, folder_, choice.name, machine_.ranks, choice.file));
  }
  Plan plan = there ? load(choice.file) : make_(choice.name, machine_.ranks);
  if (machine_.rank_order && !in_rank_order(plan)) {
    throw UsageError(
        fmt::format("{} does not add up in the order of the ranks, which this call requires: chorale check "
                    "PLAN --certify FILE shows the order, and chorale tune makes a table of plans with "
                    "that order",
                    choice.file));
  }
  // The certificate tells an executor that switches must not change the order of additions.
  if (machine_.rank_order && combines_on_switch(plan) && plan.extension.verified.empty())
    plan.extension.verified = certificate(plan, prove_plan(plan, {}, true).facts);
  return plans_.emplace(choice.file, std::move(plan)).first->second;
}

}  // namespace chorale
