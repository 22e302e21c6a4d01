#include "chorale/tuned_plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <span>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "chorale/collective.hpp"
#include "chorale/config.hpp"
#include "chorale/json.hpp"
#include "chorale/needs.hpp"
#include "chorale/proof.hpp"
#include "chorale/reduction_order.hpp"
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

std::string not_in_rank_order(const std::string& plan) {
  return fmt::format(
      "{} does not add up in the order of the ranks, which this call requires: chorale check PLAN --certify "
      "FILE shows the order, and chorale tune makes a table of plans with that order",
      plan);
}

/// Returns whether a plan that adds in the order of the ranks needs a certificate. It tells an executor that
/// switches must not change the order of additions.
bool needs_certificate(const Plan& plan) {
  return combines_on_switch(plan) && plan.extension.verified.empty();
}

Plan certified(Plan plan) {
  plan.extension.verified = certificate(plan, prove_plan(plan, {}, true).facts);
  return plan;
}

/// Returns the packet form of a table's entry.
std::optional<PacketForm> packet_of(const TuneConfig& config, const TunedPlans::Choice& choice) {
  const std::optional<PacketForm> form = packet_form_of(config.packet);
  if (form || config.packet.empty()) return form;
  throw UsageError(fmt::format("the table has the packet form '{}' for {} of {} bytes, but the forms are {}",
                               config.packet, choice.collective, choice.bytes,
                               fmt::join(packet_form_names, ", ")));
}
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

void set_by_blocks(TuneTable& table, const TuneKey& key, std::span<const TimedPlan> plans) {
  std::vector<TimedPlan> by_blocks(plans.begin(), plans.end());
  std::stable_sort(by_blocks.begin(), by_blocks.end(), [](const TimedPlan& left, const TimedPlan& right) {
    return std::tie(left.config.blocks, left.ns) < std::tie(right.config.blocks, right.ns);
  });
  const TimedPlan* fastest = nullptr;
  for (const TimedPlan& one : by_blocks) {
    if (fastest && one.ns >= fastest->ns) continue;
    if (fastest) {
      TuneKey limited = key;
      limited.max_blocks = fastest->config.blocks;
      table.set(limited, fastest->config, fastest->ns);
    }
    fastest = &one;
  }
  if (fastest) table.set(key, fastest->config, fastest->ns);
}

namespace {
/// Returns the machine with the limit of the settings, if it has no other.
TunedFor with_limit(TunedFor machine) {
  if (!machine.max_blocks) machine.max_blocks = Config::load().max_blocks;
  return machine;
}
}  // namespace

TunedPlans::TunedPlans(TuneTable table, std::string folder, TunedFor machine, Make make)
    : table_(std::move(table)),
      folder_(std::move(folder)),
      machine_(with_limit(std::move(machine))),
      make_(std::move(make)) {}

TunedPlans TunedPlans::installed(const std::string& folder, const TunedFor& machine, Make make) {
  if (folder.empty()) return TunedPlans(TuneTable(), "", machine, std::move(make));
  const std::filesystem::path root = folder, file = root / "tuned" / table_name(machine);
  std::error_code none;
  return TunedPlans(std::filesystem::exists(file, none) ? TuneTable::load(file.string()) : TuneTable(),
                    (root / "shipped").string(), machine, std::move(make));
}

void TunedPlans::use(OwnPlan own) {
  const Plan& plan = *own.plan;
  if (plan.ranks() != uint32_t(machine_.ranks)) {
    throw UsageError(fmt::format("{} should be a plan of {} ranks, but it is for {}: {}", own.name,
                                 machine_.ranks, plan.ranks(), remedy));
  }
  if (machine_.rank_order && !in_rank_order(plan)) throw UsageError(not_in_rank_order(own.name));
  if (machine_.rank_order && needs_certificate(plan))
    own.plan = std::make_shared<const Plan>(certified(plan));
  own_.push_back(std::make_shared<const OwnPlan>(std::move(own)));
}

/// Describes a plan that a message may have, from one of the sources.
struct TunedPlans::Candidate {
  /// Says whether the plan is for the message, and if not, why.
  enum class Fit : uint8_t {
    yes,
    no_entry_so_small,
    nearer_entry,
    other_sizes,
    missing,
    gpus_only,
    any_order,
    too_many_blocks,
    for_fewer_blocks
  };

  std::shared_ptr<const OwnPlan> own = nullptr;
  const TuneTable::Entry* entry = nullptr;
  std::optional<DefaultPlan> by_default = std::nullopt;
  Fit fit = Fit::yes;
  uint64_t nearer = 0;  ///< the size of the nearer entry
  uint32_t blocks = 0;  ///< the plan's thread blocks, if they are too many

  std::string name() const { return own ? own->name : entry ? entry->config.plan : by_default->name(); }
  /// Returns why the plan was not chosen.
  /// \param before  the plan that was chosen before this one was considered; null: none
  /// \param limit  the most thread blocks
  std::string reason(const Candidate* before, uint64_t bytes, uint32_t limit) const;
};

namespace {
std::string words_of_sizes(uint64_t least, uint64_t most, uint64_t bytes) {
  if (least > most) return "no size with this number of ranks";
  return bytes < least ? fmt::format("{} bytes and more", least) : fmt::format("at most {} bytes", most);
}
}  // namespace

template <class Visit>
void TunedPlans::weigh(const std::string& collective, uint64_t bytes, DType dtype, const Visit& visit) const {
  using Fit = Candidate::Fit;
  for (auto own = own_.rbegin(); own != own_.rend(); ++own) {
    if ((*own)->plan->collective != collective) continue;
    const bool fits = (*own)->least_bytes <= bytes && bytes <= (*own)->most_bytes;
    if (visit(Candidate{.own = *own, .fit = fits ? Fit::yes : Fit::other_sizes})) return;
  }
  for (const DType type : nearest_types(dtype)) {
    for (const Candidate& candidate : of_type(collective, bytes, type)) {
      if (visit(candidate)) return;
    }
  }
  for (const DefaultPlan& one : default_plans(machine_, collective)) {
    Candidate candidate{.by_default = one};
    if (one.whom != DefaultPlan::For::this_machine) {
      candidate.fit = one.whom == DefaultPlan::For::gpus ? Fit::gpus_only : Fit::any_order;
    } else if (!one.is_for(bytes)) {
      candidate.fit = Fit::other_sizes;
    } else if (one.needs_file && !make_ && !is_there(one.name())) {
      candidate.fit = Fit::missing;
    } else if (*machine_.max_blocks != 0 && !fits(candidate.blocks = blocks_of(one.name()))) {
      candidate.fit = Fit::too_many_blocks;
    }
    if (visit(candidate)) return;
  }
}

/// Returns the table's entries of one type. At most one of them is for the message.
std::vector<TunedPlans::Candidate> TunedPlans::of_type(const std::string& collective, uint64_t bytes,
                                                       DType dtype) const {
  using Fit = Candidate::Fit;
  const bool limited = *machine_.max_blocks != 0;
  const std::span<const TuneTable::Entry> entries =
      table_.entries(plan_key(machine_, collective, bytes, dtype));
  // The nearest of the entries for any number of blocks, and the best of those for fewer.
  const TuneTable::Entry *any = nullptr, *few = nullptr;
  for (const TuneTable::Entry& entry : entries) {
    if (entry.key.bytes > bytes) break;
    if (entry.key.max_blocks == 0) {
      any = &entry;
    } else if (limited && fits(blocks_of(entry)) &&
               (!few || entry.key.bytes > few->key.bytes || entry.ns < few->ns)) {
      few = &entry;
    }
  }
  const bool any_fits = any && (!limited || fits(blocks_of(*any)));
  const bool any_is_best = any_fits && (!few || any->key.bytes > few->key.bytes ||
                                        (any->key.bytes == few->key.bytes && any->ns <= few->ns));
  const TuneTable::Entry* const chosen = any_is_best ? any : few;
  std::vector<Candidate> candidates;
  for (const TuneTable::Entry& entry : entries) {
    Candidate candidate{.entry = &entry};
    const TuneTable::Entry* const nearest = chosen ? chosen : any;
    if (entry.key.bytes > bytes) {
      candidate.fit = Fit::no_entry_so_small;
    } else if (&entry == chosen) {
      candidate.fit = Fit::yes;
    } else if (&entry == any && !any_fits) {
      candidate.fit = Fit::too_many_blocks;
      candidate.blocks = blocks_of(entry);
    } else if (nearest && nearest->key.bytes > entry.key.bytes) {
      candidate.fit = Fit::nearer_entry;
      candidate.nearer = nearest->key.bytes;
    } else if (limited && !fits(blocks_of(entry))) {
      candidate.fit = Fit::too_many_blocks;
      candidate.blocks = blocks_of(entry);
    } else {
      candidate.fit = Fit::for_fewer_blocks;
    }
    candidates.push_back(candidate);
  }
  return candidates;
}

std::string TunedPlans::name_for_roots(std::string_view collective) const {
  constexpr uint32_t most = 16;
  // The root of a broadcast has two blocks for each instance.
  const uint32_t each = collective == "broadcast" ? 2 : 1;
  const uint32_t limit = *machine_.max_blocks;
  return fmt::format("{}_direct_b{}", collective, limit == 0 ? most : std::clamp(limit / each, 1u, most));
}

bool TunedPlans::fits(uint32_t blocks) const { return blocks <= *machine_.max_blocks; }

uint32_t TunedPlans::blocks_of(const TuneTable::Entry& entry) const {
  const std::string& plan = entry.config.plan;
  if (plan.empty() || plan.find('/') != std::string::npos) return 0;  // check_named() refuses it
  return entry.config.blocks != 0 ? entry.config.blocks : blocks_of(plan);
}

/// Returns the thread blocks of a plan, which it reads or makes once.
uint32_t TunedPlans::blocks_of(const std::string& name) const {
  const auto known = blocks_.find(name);
  if (known != blocks_.end()) return known->second;
  return blocks_.emplace(name, read(name).thread_blocks()).first->second;
}

std::string TunedPlans::Candidate::reason(const Candidate* before, uint64_t bytes, uint32_t limit) const {
  switch (fit) {
    case Fit::no_entry_so_small:
      return fmt::format("tuned for {} bytes of {} and more", entry->key.bytes, dtype_name(entry->key.dtype));
    case Fit::nearer_entry:
      return fmt::format("tuned for {} bytes of {}, and the entry for {} bytes is nearer", entry->key.bytes,
                         dtype_name(entry->key.dtype), nearer);
    case Fit::other_sizes:
      return own ? fmt::format("set for {}", words_of_sizes(own->least_bytes, own->most_bytes, bytes))
                 : fmt::format("the default for {}",
                               words_of_sizes(by_default->least, by_default->most, bytes));
    case Fit::missing:
      return "the default, but its file is missing";
    case Fit::gpus_only:
      return "a default for GPUs";
    case Fit::any_order:
      return "a default for sums in any order";
    case Fit::too_many_blocks:
      return fmt::format("{} blocks, the limit is {}", blocks, limit);
    case Fit::for_fewer_blocks:
      return fmt::format("the fastest with at most {} blocks", entry->key.max_blocks);
    case Fit::yes:
      break;
  }
  if (!before) return "";
  if (own) return "set for this size, but replaced by a plan that was set later";
  if (before->own) return "a plan of your own goes before";
  if (entry) {
    return fmt::format("tuned for {}, and the table has entries of {}", dtype_name(entry->key.dtype),
                       dtype_name(before->entry->key.dtype));
  }
  if (before->entry) return "a default, which an entry of the table replaces";
  return fmt::format("the default if {} is missing", before->name());
}

TunedPlans::Choice TunedPlans::choose(const std::string& collective, uint64_t bytes, DType dtype) const {
  Choice choice;
  choice.collective = collective;
  choice.max_blocks = *machine_.max_blocks;
  std::optional<Candidate> fewest;  // of those that have too many blocks
  weigh(collective, bytes, dtype, [&](const Candidate& candidate) {
    if (candidate.fit == Candidate::Fit::too_many_blocks && (!fewest || candidate.blocks < fewest->blocks))
      fewest = candidate;
    if (candidate.fit != Candidate::Fit::yes) return false;
    choice.name = candidate.name();
    choice.own = candidate.own;
    if (candidate.own) {
      choice.packet = candidate.own->packet;
      return true;
    }
    if (const TuneTable::Entry* const entry = candidate.entry) {
      choice.found = entry->key.bytes == bytes ? TuneTable::Found::exact : TuneTable::Found::smaller;
      choice.bytes = entry->key.bytes;
      choice.dtype = entry->key.dtype;
      check_named(choice);
      choice.packet = packet_of(entry->config, choice);
    }
    choice.file = file_of(choice.name);
    return true;
  });
  if (!choice.name.empty()) return choice;
  if (!fewest) throw_no_default(collective);
  throw UsageError(fmt::format(
      "no plan for {} of {} bytes has at most {} thread blocks, which is the limit (max_blocks): {} has the "
      "fewest, {}. Set the limit to {} or more, or to 0 for none",
      collective, bytes, choice.max_blocks, fewest->name(), fewest->blocks, fewest->blocks));
}

std::vector<TunedPlans::Passed> TunedPlans::explain(const std::string& collective, uint64_t bytes,
                                                    DType dtype) const {
  const Choice chosen = choose(collective, bytes, dtype);
  std::vector<Passed> passed;
  const auto add = [&](const std::string& name, const std::string& reason) {
    const bool known =
        name == chosen.name ||
        std::any_of(passed.begin(), passed.end(), [&](const Passed& one) { return one.plan == name; });
    if (!known) passed.push_back({name, reason});
  };
  std::optional<Candidate> before;
  weigh(collective, bytes, dtype, [&](const Candidate& candidate) {
    add(candidate.name(), candidate.reason(before ? &*before : nullptr, bytes, *machine_.max_blocks));
    if (!before && candidate.fit == Candidate::Fit::yes) before = candidate;
    return false;
  });
  for (const DType type : nearest_types(dtype)) {
    for (const TuneTable::Failure& failure : table_.failures(plan_key(machine_, collective, bytes, type))) {
      add(failure.config.plan, fmt::format("failed when it was tuned for {} bytes of {}: {}",
                                           failure.key.bytes, dtype_name(type), failure.why));
    }
  }
  for (const std::string& name : others_in_folder(collective)) add(name, "neither tuned nor a default");
  return passed;
}

/// Returns the names of the plans in the folder for this collective, in alphabetical order.
std::vector<std::string> TunedPlans::others_in_folder(const std::string& collective) const {
  std::vector<std::string> names;
  if (folder_.empty()) return names;
  const std::string end = fmt::format("_{}.json", machine_.ranks);
  std::error_code none;
  for (const auto& file : std::filesystem::directory_iterator(folder_, none)) {
    std::string name = file.path().filename().string();
    if (!name.starts_with(collective + "_") || !name.ends_with(end)) continue;
    name.resize(name.size() - end.size());
    names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string TunedPlans::Choice::words() const {
  std::string text = name;
  if (packet) text.append(", ").append(packet_form_names[size_t(*packet)]);
  if (own) return text + ", as set for this size";
  const std::string within =
      max_blocks != 0 ? fmt::format(" within {} block{}", max_blocks, max_blocks == 1 ? "" : "s") : "";
  if (found == TuneTable::Found::none)
    return fmt::format("{}, the default{}: nothing is tuned for it", text, within);
  return fmt::format("{}, as tuned for {} bytes of {}{}", text, bytes, dtype_name(dtype), within);
}

std::string words_of(const std::vector<TunedPlans::Passed>& passed) {
  std::vector<std::pair<std::string, std::string>> groups;  // plans by reason
  for (const TunedPlans::Passed& one : passed) {
    const auto known = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& group) { return group.second == one.reason; });
    if (known == groups.end()) {
      groups.emplace_back(one.plan, one.reason);
    } else {
      known->first += ", " + one.plan;
    }
  }
  std::string text;
  for (const auto& [plans, reason] : groups)
    text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", plans, reason);
  return text;
}

/// Throws if an entry of the table names no plan of the folder.
void TunedPlans::check_named(const Choice& choice) const {
  if (choice.name.empty()) {
    throw UsageError(
        fmt::format("the table's entry for {} of {} bytes names no plan", choice.collective, choice.bytes));
  }
  if (choice.name.find('/') != std::string::npos) {
    throw UsageError(
        fmt::format("the table names '{}' for {} of {} bytes: it should be the name of a plan in {}, "
                    "without '/'",
                    choice.name, choice.collective, choice.bytes, folder_));
  }
}

bool TunedPlans::is_there(const std::string& name) const {
  std::error_code none;
  return !folder_.empty() && std::filesystem::exists(file_of(name), none);
}

std::string TunedPlans::file_of(const std::string& name) const {
  return fmt::format("{}{}{}_{}.json", folder_, folder_.empty() ? "" : "/", name, machine_.ranks);
}

const Plan& TunedPlans::plan(const Choice& choice) {
  if (choice.own) return *choice.own->plan;
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
  Plan plan = read(choice.name);
  if (machine_.rank_order && !in_rank_order(plan)) throw UsageError(not_in_rank_order(choice.file));
  if (machine_.rank_order && needs_certificate(plan)) plan = certified(std::move(plan));
  return plans_.emplace(choice.file, std::move(plan)).first->second;
}

/// Reads the plan of this name, or makes it if the folder lacks it.
Plan TunedPlans::read(const std::string& name) const {
  const std::string file = file_of(name);
  if (is_there(name)) return load(file);
  if (make_) return make_(name, machine_.ranks);
  throw UsageError(
      fmt::format("there is no {} of {} ranks{}: chorale compile {} --set ranks={} -o {} makes it", name,
                  machine_.ranks, folder_.empty() ? "" : " in " + folder_, name, machine_.ranks, file));
}

}  // namespace chorale
