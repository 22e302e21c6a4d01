// Writes the results as CSV and JSON, for every subject, size and mode, and the best plans of size ranges as
// JSON.

#include "tools/csv.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "chorale/collective.hpp"
#include "chorale/json_text.hpp"
#include "tools/bench/results.hpp"

namespace chorale::tools {
namespace {

using Json = nlohmann::ordered_json;

Json facts_of(const BenchResults& results) {
  Json facts;
  for (const auto& [name, value] : results.facts) facts[name] = value;
  return facts;
}

/// Returns one result, with the same keys as the columns of the CSV.
Json fields(const BenchResults& results, const Result& result) {
  const BenchRequest& request = *results.request;
  const Subject& of = results.subject(result);
  const Bandwidth speed = bandwidth(results, result);
  const double nccl = results.nccl_us(of.collective, of.in_place, result.size, result.mode);
  Json row;
  row["collective"] = of.collective;
  row["ranks"] = request.ranks;
  row["size"] = request.sizes[result.size];
  row["count"] = elements(results, result);
  row["type"] = dtype_name(request.dtype);
  row["redop"] = redop(results, result);
  row["root"] = root(results, result);
  row["mode"] = mode_names[size_t(result.mode)];
  row["place"] = of.in_place ? "in-place" : "out-of-place";
  row["plan"] = of.name;
  row["default"] = nullptr;
  if (!of.is_default.empty()) row["default"] = bool(of.is_default[result.size]);
  row["packet"] = nullptr;
  if (const std::optional<PacketForm> form = packet(results, result))
    row["packet"] = packet_form_names[size_t(*form)];
  row["backend"] = request.backend;
  for (const char* const key :
       {"time_us", "algbw_gb_s", "busbw_gb_s", "wrong", "nccl_us", "peer_us", "peer", "ratio"})
    row[key] = nullptr;
  if (result.finished) {
    row["time_us"] = result.us;
    row["algbw_gb_s"] = speed.algorithm;
    row["busbw_gb_s"] = speed.bus;
    if (result.checked) row["wrong"] = result.wrong;
  }
  if (nccl > 0) row["nccl_us"] = nccl;
  if (const Result* const peer = results.best_peer(of.collective, of.in_place, result.size, result.mode)) {
    row["peer_us"] = peer->us;
    row["peer"] = results.subject(*peer).name;
    if (result.finished && result.us > 0) row["ratio"] = peer->us / result.us;
  }
  row["best"] = results.best(of.collective, of.in_place, result.size, result.mode) == &result;
  row["note"] = result.what.empty() ? result.note : result.what;
  return row;
}

/// Returns the plans with the right result that the table of the tuner chooses from.
std::vector<TimedPlan> timed(const BenchResults& results, const TuneKey& key, size_t size, Mode mode,
                             bool rank_order) {
  std::vector<TimedPlan> plans;
  for (const Result& result : results.all) {
    const Subject& of = results.subject(result);
    if (result.size != size || result.mode != mode || !of.is_plan() || of.collective != key.kind) continue;
    if (of.in_place != key.variant.starts_with("in place") || (rank_order && !of.rank_order)) continue;
    if (!result.finished || result.wrong || !result.what.empty()) continue;
    if (key.max_blocks != 0 && of.blocks > key.max_blocks) continue;
    TuneConfig config;
    config.plan = of.name;
    config.blocks = of.blocks;
    if (of.packet) config.packet = packet_form_names[size_t(*of.packet)];
    plans.push_back({config, result.us * 1000});
  }
  return plans;
}

}  // namespace

std::string csv(const BenchResults& results) {
  std::vector<Json> rows;
  for (const Result& result : results.all) {
    if (says_something(results, result)) rows.push_back(fields(results, result));
  }
  // Rows have columns even if nothing was timed, so that a reader finds them.
  if (rows.empty() && !results.all.empty()) return csv_head(fields(results, results.all.front()));
  return csv_text(rows);
}

std::string json(const BenchResults& results) {
  Json whole;
  whole["machine"] = facts_of(results);
  whole["complete"] = results.complete;
  whole["results"] = Json::array();
  for (const Result& result : results.all) {
    if (says_something(results, result)) whole["results"].push_back(fields(results, result));
  }
  return json_text(whole, 2) + "\n";
}

std::string tuned(const BenchResults& results, const TunedFor& machine) {
  const BenchRequest& request = *results.request;
  TuneTable table;
  for (const std::string& collective : results.collectives()) {
    // If the collective adds nothing up, all plans are in rank order.
    std::vector<TunedFor> choices = {machine};
    if (collective_reduces(collective) && !machine.rank_order) {
      choices.push_back(machine);
      choices.back().rank_order = true;
    }
    for (const bool in_place : {false, true}) {
      // Graphs show what the plans cost; eager calls of small sizes show what a launch costs.
      const Mode mode = results.any(collective, in_place, Mode::graph) ? Mode::graph : Mode::eager;
      for (size_t size = 0; size < request.sizes.size(); ++size) {
        for (const TunedFor& choice : choices) {
          TuneKey key = plan_key(choice, collective, request.sizes[size], request.dtype, in_place);
          if (!request.limits.empty()) key.max_blocks = request.limits.back();
          set_by_blocks(table, key, timed(results, key, size, mode, choice.rank_order));
        }
      }
    }
  }
  return table.text();
}

}  // namespace chorale::tools
