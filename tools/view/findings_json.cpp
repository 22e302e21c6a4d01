#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "tools/view/plan_picture.hpp"

namespace chorale::tools {
namespace {

using Json = nlohmann::ordered_json;
using Who = ProofEvent::Who;

std::string words_of(const SourceLine& line) {
  return line.line ? line.file + ":" + std::to_string(line.line) : "";
}

/// Returns the number of an operation in the picture; -1 if there is no such operation.
int64_t number_of(const Plan& plan, const OpPlace& at, const std::vector<std::vector<uint32_t>>& first_op) {
  if (at.rank >= first_op.size() || at.threadblock >= first_op[at.rank].size()) return -1;
  if (at.op >= plan.gpus[at.rank].threadblocks[at.threadblock].ops.size()) return -1;
  return int64_t(first_op[at.rank][at.threadblock]) + at.op;
}

std::string actor_of(const WitnessEvent& event) {
  const std::string rank = "rank " + std::to_string(event.at.rank);
  if (event.who == Who::application) return rank;
  const std::string block = rank + ", block " + std::to_string(event.at.threadblock);
  return event.who == Who::proxy ? block + ", proxy" : block;
}

Json events_of(const Plan& plan, const Witness& witness, const std::vector<std::vector<uint32_t>>& first_op) {
  Json events = Json::array();
  for (const WitnessEvent& event : witness.events) {
    using Part = WitnessEvent::Part;
    const char* const part = event.part == Part::culprit   ? "culprit"
                             : event.part == Part::missing ? "missing"
                                                           : "context";
    events.push_back({{"part", part},
                      {"actor", actor_of(event)},
                      {"launch", event.launch + 1},
                      {"mark", event.mark},
                      {"text", event.text},
                      {"line", words_of(event.line)},
                      {"op", event.who == Who::application ? -1 : number_of(plan, event.at, first_op)}});
  }
  return events;
}

}  // namespace

Json findings_json(const Plan& plan, const std::vector<Explained>& findings,
                   const std::vector<std::vector<uint32_t>>& first_op) {
  Json list = Json::array();
  const auto number = [&](const std::optional<OpPlace>& at) {
    return at ? number_of(plan, *at, first_op) : -1;
  };
  for (const Explained& one : findings) {
    const Diagnostic& of = one.diagnostic;
    Json notes = Json::array(), edges = Json::array();
    for (const Note& note : of.notes) {
      notes.push_back({{"text", note.text},
                       {"line", words_of(author_line(plan, note.line, note.at))},
                       {"op", number(note.at)}});
    }
    for (const WitnessEdge& edge : one.witness.edges) edges.push_back({edge.from, edge.to, edge.publishes});
    list.push_back({{"check", of.check},
                    {"text", of.text},
                    {"line", words_of(author_line(plan, of.line, of.at))},
                    {"op", number(of.at)},
                    {"notes", std::move(notes)},
                    {"help", of.help},
                    {"rendered", render(plan, of)},
                    {"events", events_of(plan, one.witness, first_op)},
                    {"edges", std::move(edges)},
                    {"leftOut", one.witness.left_out},
                    {"because", one.witness.because},
                    {"remedies", one.witness.remedies}});
  }
  return list;
}

}  // namespace chorale::tools
