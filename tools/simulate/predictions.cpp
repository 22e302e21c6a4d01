#include "tools/simulate/predictions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "chorale/json_text.hpp"
#include "tools/bench/results.hpp"
#include "tools/command.hpp"
#include "tools/csv.hpp"
#include "tools/oracle.hpp"

namespace chorale::tools {
namespace {

using Json = nlohmann::ordered_json;

/// Holds the loads of the busiest link and memory.
struct Busiest {
  double link = 0, memory = 0;
  std::string name;  ///< of the link; "" without a topology
};

Busiest busiest(const Simulation& simulation, const Topology& topology) {
  Busiest most;
  for (const LinkUse& use : simulation.links) {
    most.link = std::max({most.link, use.out_busy_ns, use.in_busy_ns});
    most.memory = std::max(most.memory, use.memory_busy_ns);
  }
  const std::vector<double>& links = simulation.topology_busy_ns;
  if (!links.empty()) {
    const auto found = std::max_element(links.begin(), links.end());
    most.link = *found;
    most.name = topology.link_name(uint32_t(found - links.begin()));
  }
  return {100 * most.link / simulation.ns, 100 * most.memory / simulation.ns, most.name};
}

struct Row {
  const Plan* plan;
  std::string name;
  uint64_t bytes, elements;
  double us, algorithm, bus;
  Busiest busy;
  uint32_t blocks;  ///< thread blocks of the rank that has most
  bool fastest;
};

Row row_of(const Predictions& of, const Prediction& one) {
  const NamedPlan& named = of.plans[one.plan];
  const uint64_t bytes = of.sizes[one.size];
  const double algorithm = one.simulation.ns > 0 ? double(bytes) / one.simulation.ns : 0;
  return {&named.plan,
          named.name,
          bytes,
          message_elements(named.plan.collective, bytes, named.plan.ranks(), of.dtype),
          one.simulation.ns / 1e3,
          algorithm,
          algorithm * bus_factor(named.plan.collective, named.plan.ranks()),
          busiest(one.simulation, of.machine.topology),
          named.plan.thread_blocks(),
          of.fastest(one)};
}

std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

/// Returns a line for each reason, with the sizes for which it holds.
std::vector<std::string> refusals(const Predictions& of) {
  std::map<std::string, std::string> sizes;
  std::vector<std::string> order;
  for (const Prediction& one : of.all) {
    if (one.refused.empty()) continue;
    std::string& at = sizes[one.refused];
    if (at.empty()) order.push_back(one.refused);
    const std::string size = format_bytes(of.sizes[one.size]);
    if (at.find(size) == at.npos) at += (at.empty() ? "" : ", ") + size;
  }
  for (std::string& reason : order) reason = "not simulated at " + sizes[reason] + ": " + reason;
  return order;
}

/// Rounds to six digits, because the times are sums of thousands of other times.
double rounded(double value) { return std::stod(fmt::format("{:.6g}", value)); }

/// Returns the form of a plan's packets; "" for plans without packets.
std::string_view packet_name(const Predictions& of, const Plan& plan, uint64_t bytes) {
  if (plan.protocol != Protocol::LL) return "";
  return packet_form_names[size_t(of.packet.value_or(packet_form_by_size(plan, bytes)))];
}

Json fields(const Predictions& of, const Prediction& one) {
  const Row row = row_of(of, one);
  Json json;
  json["collective"] = row.plan->collective;
  json["ranks"] = row.plan->ranks();
  json["size"] = row.bytes;
  json["count"] = row.elements;
  json["type"] = dtype_name(of.dtype);
  json["mode"] = of.eager ? "eager" : "graph";
  json["place"] = row.plan->inplace ? "in-place" : "out-of-place";
  json["plan"] = row.name;
  json["packet"] = nullptr;
  if (const std::string_view form = packet_name(of, *row.plan, row.bytes); !form.empty())
    json["packet"] = form;
  json["blocks"] = row.blocks;
  json["backend"] = "simulated";
  for (const char* const key : {"time_us", "algbw_gb_s", "busbw_gb_s", "link_busy", "memory_busy"})
    json[key] = nullptr;
  if (!of.machine.topology.nodes.empty()) json["busiest_link"] = nullptr;
  if (one.refused.empty()) {
    json["time_us"] = rounded(row.us);
    json["algbw_gb_s"] = rounded(row.algorithm);
    json["busbw_gb_s"] = rounded(row.bus);
    json["link_busy"] = rounded(row.busy.link / 100);
    json["memory_busy"] = rounded(row.busy.memory / 100);
    if (!row.busy.name.empty()) json["busiest_link"] = row.busy.name;
  }
  json["fastest"] = row.fastest;
  json["note"] = one.refused;
  return json;
}

std::string plan_words(const Predictions& of, const Row& row) {
  const std::string_view form = packet_name(of, *row.plan, row.bytes);
  return row.name + (form.empty() ? "" : ", " + std::string(form)) + (row.plan->inplace ? ", in place" : "") +
         (row.busy.name.empty() ? "" : " [" + row.busy.name + "]");
}

}  // namespace

bool Predictions::fastest(const Prediction& one, bool of_collective) const {
  if (!one.refused.empty()) return false;
  const Plan& mine = plans[one.plan].plan;
  return std::none_of(all.begin(), all.end(), [&](const Prediction& other) {
    const Plan& plan = plans[other.plan].plan;
    if (other.size != one.size || !other.refused.empty() || plan.collective != mine.collective) return false;
    if (plan.inplace != mine.inplace || (of_collective && !plans[other.plan].of_collective)) return false;
    return other.simulation.ns < one.simulation.ns ||
           (other.simulation.ns == one.simulation.ns && other.plan < one.plan);
  });
}

std::string text_table(const Predictions& of, const PredictionStyle& style) {
  std::string text =
      fmt::format("# predicted for {}, {}, {}\n", of.machine.title(),
                  count(of.plans.front().plan.ranks(), "rank"), of.eager ? "eager" : "in a CUDA graph");
  const auto line = [&](const std::string& first, const auto&... words) {
    text += trimmed(fmt::format("{}{:>12}{:>14}{:>10}{:>11}{:>9}{:>9}{:>7}{:>7}{:>8}  {}", first, words...));
  };
  const bool topology = !of.machine.topology.nodes.empty();
  line("#", "size", "count", "type", "time", "algbw", "busbw", "link", "memory", "blocks",
       topology ? "plan [busiest link]" : "plan");
  line("#", "(B)", "(elements)", "", "(us)", "(GB/s)", "(GB/s)", "busy", "busy", "", "");
  const auto shrinks = [&](const NamedPlan& named) { return named.of_collective && !style.all; };
  const bool marks =
      of.plans.size() > 1 && !std::all_of(of.plans.begin(), of.plans.end(), [&](const NamedPlan& named) {
        return shrinks(named);  // then the table has only the fastest
      });
  std::set<std::string> shrunk;  // collectives
  for (const Prediction& one : of.all) {
    if (!one.refused.empty()) continue;
    const NamedPlan& named = of.plans[one.plan];
    if (shrinks(named) && !of.fastest(one, true)) {
      shrunk.insert(named.plan.collective);
      continue;
    }
    const Row row = row_of(of, one);
    line(row.fastest && marks ? "*" : " ", row.bytes, row.elements, dtype_name(of.dtype), time_word(row.us),
         fmt::format("{:.2f}", row.algorithm), fmt::format("{:.2f}", row.bus),
         fmt::format("{:.0f}%", row.busy.link), fmt::format("{:.0f}%", row.busy.memory), row.blocks,
         plan_words(of, row));
  }
  if (marks) text += "# *: the fastest of its size\n";
  for (const std::string& collective : shrunk)
    text +=
        "# of " + collective + "'s shipped plans, only the fastest of each size is shown; --all shows all\n";
  for (const std::string& refused : refusals(of)) text += "# " + refused + "\n";
  return text;
}

std::string csv(const Predictions& of) {
  std::vector<Json> rows;
  for (const Prediction& one : of.all) rows.push_back(fields(of, one));
  return csv_text(rows);
}

std::string json(const Predictions& of) {
  Json whole;
  whole["machine"] = of.machine.name;
  if (!of.machine.topology.nodes.empty()) whole["topology"] = of.machine.topology.name;
  whole["results"] = Json::array();
  for (const Prediction& one : of.all) whole["results"].push_back(fields(of, one));
  return json_text(whole, 2) + "\n";
}

}  // namespace chorale::tools
