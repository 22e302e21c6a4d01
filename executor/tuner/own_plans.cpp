#include "chorale/own_plans.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "chorale/collective.hpp"
#include "chorale/compile.hpp"
#include "chorale/content_hash.hpp"
#include "chorale/error.hpp"
#include "chorale/json.hpp"
#include "chorale/proof.hpp"
#include "object_reader.hpp"

namespace chorale {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* remedy_for_file = "chorale compile makes plans, and docs/tuning.md describes the file";

/// Holds an entry of the file.
struct Entry {
  std::string collective, plan, packet;
  uint64_t from_bytes = 0, to_bytes = UINT64_MAX;
  bool from = false, to = false;  ///< the entry says so itself
};

Entry entry_of(const Json& json, const std::string& where) {
  Entry entry;
  ObjectReader reader(json, where);
  reader.read("collective", entry.collective, true);
  reader.read("from_bytes", entry.from_bytes);
  reader.read("to_bytes", entry.to_bytes);
  reader.read("plan", entry.plan, true);
  reader.read("packet", entry.packet);
  reader.end();
  entry.from = json.contains("from_bytes");
  entry.to = json.contains("to_bytes");
  const auto& words = standard_collectives;
  if (std::find(words.begin(), words.end(), entry.collective) == words.end()) {
    throw UsageError(fmt::format("{}: 'collective' is '{}', but must be one of {}", where, entry.collective,
                                 fmt::join(words, ", ")));
  }
  if (entry.from_bytes > entry.to_bytes) {
    throw UsageError(fmt::format("{}: 'from_bytes' is {}, which is more than the {} of 'to_bytes'", where,
                                 entry.from_bytes, entry.to_bytes));
  }
  if (!entry.packet.empty() && !packet_form_of(entry.packet)) {
    throw UsageError(fmt::format("{}: 'packet' is '{}', but must be one of {}", where, entry.packet,
                                 fmt::join(packet_form_names, ", ")));
  }
  return entry;
}

bool is_file(const std::string& plan) { return plan.find_first_of("/.") != std::string::npos; }

/// Returns what is wrong with a plan; empty if it may run. A certificate spares the proofs.
std::string finding_in(const Plan& plan) {
  if (plan.extension.schedule && plan.gpus.empty()) return "it is a host schedule, which no collective runs";
  Diagnostics found = check(plan);
  const bool certified = !plan.extension.verified.empty() && refute_certificate(plan).empty();
  if (found.empty() && !certified) found = prove(plan);
  if (found.empty()) return "";
  std::string text = "it has findings: " + render(plan, found);
  text.erase(text.find_last_not_of('\n') + 1);  // a sentence follows
  return text;
}

class File {
 public:
  File(const std::string& path, int ranks, const MakePlan& make)
      : folder_(std::filesystem::path(path).parent_path()), ranks_(ranks), make_(make) {}

  void add(const Entry& entry, const std::string& where) {
    const std::shared_ptr<const Plan> plan = plan_of(entry, where);
    const auto refuse = [&](const std::string& why) {
      throw UsageError(fmt::format("{}: {}: {}. {}", where, entry.plan, why, remedy_for_file));
    };
    if (plan->ranks() != uint32_t(ranks_) && !plan->extension.schedule) {
      all_.left_out.push_back(
          fmt::format("{}: {} is for {} ranks and not for {}", where, entry.plan, plan->ranks(), ranks_));
      return;
    }
    if (const std::string found = finding_in_known(*plan, entry.plan); !found.empty()) refuse(found);
    if (plan->collective != entry.collective)
      refuse(fmt::format("it is a plan for {} and not for {}", plan->collective, entry.collective));
    if (plan->extension.root != 0) refuse(fmt::format("its root is {}, but must be 0", plan->extension.root));
    OwnPlan own{plan, entry.plan, plan->min_message_size, plan->max_message_size};
    if (entry.from) own.least_bytes = entry.from_bytes;
    if (entry.to) own.most_bytes = entry.to_bytes;
    if (own.least_bytes > own.most_bytes || own.least_bytes < plan->min_message_size ||
        own.most_bytes > plan->max_message_size) {
      refuse(fmt::format("it accepts messages of {} to {} bytes, but the entry is for {} to {}",
                         plan->min_message_size, plan->max_message_size, own.least_bytes, own.most_bytes));
    }
    if (!entry.packet.empty()) own.packet = packet_form_of(entry.packet);
    all_.plans.push_back(std::move(own));
  }

  OwnPlans take() { return std::move(all_); }

 private:
  /// Reads or makes each plan once.
  std::shared_ptr<const Plan> plan_of(const Entry& entry, const std::string& where) {
    std::shared_ptr<const Plan>& plan = plans_[entry.plan];
    if (plan) return plan;
    try {
      if (is_file(entry.plan)) {
        plan = std::make_shared<const Plan>(load((folder_ / entry.plan).string()));
      } else if (make_) {
        plan = std::make_shared<const Plan>(make_(entry.plan, ranks_));
      } else {
        throw UsageError(fmt::format("'{}' is not the path of a plan file", entry.plan));
      }
    } catch (const std::exception& error) {
      throw UsageError(fmt::format("{}: {}. {}", where, error.what(), remedy_for_file));
    }
    return plan;
  }

  std::string finding_in_known(const Plan& plan, const std::string& name) {
    const auto known = findings_.find(name);
    if (known != findings_.end()) return known->second;
    return findings_.emplace(name, finding_in(plan)).first->second;
  }

  const std::filesystem::path folder_;
  const int ranks_;
  const MakePlan& make_;
  std::map<std::string, std::shared_ptr<const Plan>> plans_;  ///< by Entry::plan
  std::map<std::string, std::string> findings_;               ///< by Entry::plan
  OwnPlans all_;
};

OwnPlans parsed(const std::string& text, const std::string& path, int ranks, const MakePlan& make) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw UsageError(fmt::format("this is not JSON. {}", remedy_for_file));
  ObjectReader top(json, "the file");
  uint64_t version = 0;
  top.read("version", version, true);
  if (version != 1)
    throw UsageError(fmt::format("the file: 'version' is {}, but only 1 is supported", version));
  const Json& entries = top.array("plans");
  top.end();
  File file(path, ranks, make);
  for (size_t at = 0; at < entries.size(); ++at) {
    const std::string where = fmt::format("/plans/{}", at);
    file.add(entry_of(entries[at], where), where);
  }
  return file.take();
}

}  // namespace

std::string OwnPlans::digest() const {
  std::string text;
  for (const OwnPlan& own : plans) {
    text += fmt::format("{} of {} to {} bytes: plan {:016x}{}\n", own.plan->collective, own.least_bytes,
                        own.most_bytes, content_hash(*own.plan),
                        own.packet ? fmt::format(", {}", packet_form_names[size_t(*own.packet)]) : "");
  }
  return text;
}

OwnPlans read_own_plans(const std::string& path, int ranks, const MakePlan& make) {
  return parse_file(path, [&](const std::string& text) { return parsed(text, path, ranks, make); });
}

}  // namespace chorale
