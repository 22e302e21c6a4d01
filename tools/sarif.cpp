// The format is the Static Analysis Results Interchange Format (SARIF) 2.1.0 of OASIS.

#include "tools/sarif.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "chorale/json_text.hpp"
#include "tools/findings.hpp"
#include "tools/version.hpp"

namespace chorale::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view checks[][2] = {
#define CHORALE_CHECK(name, summary) {#name, summary},
#define CHORALE_PROOF(name, summary) {#name, summary},
#include "chorale/passes.def"
};

/// Lists the known checks. Checks of targets and of the DSL are added when results have them.
Json rules(const Json& results) {
  Json list = Json::array();
  const auto add = [&](std::string_view id, std::string_view summary) {
    for (const Json& rule : list)
      if (rule["id"] == id) return;
    Json& rule = list.emplace_back(Json{{"id", id}});
    if (!summary.empty()) rule["shortDescription"] = {{"text", summary}};
  };
  for (const auto& [name, summary] : checks) add(name, summary);
  for (const Json& result : results) add(result["ruleId"].get<std::string>(), {});
  return list;
}

Json message(const std::string& text) { return {{"text", text}}; }

/// Returns the line of the program if it is known, else the plan file and the place in it.
Json location(const Plan& plan, const std::string& path, SourceLine line, const std::optional<OpPlace>& at) {
  Json physical;
  const bool known = at && at->rank < plan.gpus.size() &&
                     at->threadblock < plan.gpus[at->rank].threadblocks.size() &&
                     at->op < plan.gpus[at->rank].threadblocks[at->threadblock].ops.size();
  line = author_line(plan, line, at);
  physical["artifactLocation"] = {{"uri", line.line ? line.file : path}};
  if (line.line) physical["region"] = {{"startLine", line.line}};
  Json place{{"physicalLocation", std::move(physical)}};
  if (at) {
    std::string name = "rank " + std::to_string(at->rank);
    if (known) name += "/thread block " + std::to_string(at->threadblock) + "/op " + std::to_string(at->op);
    place["logicalLocations"] = Json::array({{{"fullyQualifiedName", std::move(name)}}});
  }
  return place;
}

/// Returns the events of a witness in the form that editors step through.
Json flow(const Plan& plan, const std::string& path, const Witness& witness) {
  Json steps = Json::array();
  for (size_t position = 0; position < witness.events.size(); ++position) {
    const WitnessEvent& event = witness.events[position];
    const bool application = event.who == ProofEvent::Who::application;
    Json at = application
                  ? Json{{"logicalLocations",
                          Json::array({{{"fullyQualifiedName", "rank " + std::to_string(event.at.rank)}}})}}
                  : location(plan, path, event.line, event.at);
    std::string text = event.mark.empty() ? event.text : event.mark + ": " + event.text;
    if (event.part == WitnessEvent::Part::missing) text = "never: " + text;
    at["message"] = message(text + ", launch " + std::to_string(event.launch + 1));
    steps.push_back({{"location", std::move(at)},
                     {"executionOrder", position + 1},
                     {"importance", event.part == WitnessEvent::Part::context ? "important" : "essential"}});
  }
  return Json::array({{{"threadFlows", Json::array({{{"locations", std::move(steps)}}})}}});
}

}  // namespace

void Sarif::add(const Plan& plan, const std::string& path, const std::vector<Explained>& all,
                const char* level) {
  for (const Explained& of : all) {
    const Diagnostic& found = of.diagnostic;
    std::string text = found.text;
    for (const std::string& sentence : of.witness.because) text += "\n" + sentence;
    if (!found.help.empty()) text += "\nhelp: " + found.help;
    Json result{{"ruleId", found.check}, {"level", level}, {"message", message(text)}};
    result["locations"] = Json::array({location(plan, path, found.line, found.at)});
    Json related = Json::array();
    for (const Note& note : found.notes) {
      Json place = location(plan, path, note.line, note.at);
      place["id"] = related.size();
      place["message"] = message(note.text);
      related.push_back(std::move(place));
    }
    if (!related.empty()) result["relatedLocations"] = std::move(related);
    if (!of.witness.events.empty()) result["codeFlows"] = flow(plan, path, of.witness);
    results_.push_back(json_text(result));
  }
}

std::string Sarif::text() const {
  Json results = Json::array();
  for (const std::string& result : results_) results.push_back(Json::parse(result));
  Json driver{{"name", "chorale"}, {"version", CHORALE_VERSION}, {"rules", rules(results)}};
  const Json log{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                 {"version", "2.1.0"},
                 {"runs", Json::array({{{"tool", {{"driver", std::move(driver)}}},
                                        {"columnKind", "utf16CodeUnits"},
                                        {"results", std::move(results)}}})}};
  return json_text(log, 1) + "\n";
}

}  // namespace chorale::tools
