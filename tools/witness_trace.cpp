#include "tools/witness_trace.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "chorale/json_text.hpp"
#include "tools/trace.hpp"

namespace chorale::tools {
namespace {

using Json = nlohmann::ordered_json;
using Who = ProofEvent::Who;

// The trace gives events equal distances and durations, because they have an order but no times.
constexpr double apart_us = 10, long_us = 6;

/// Returns the trace's thread for an event: the application's, a block's, or the thread of the block's proxy.
uint32_t thread_of(const WitnessEvent& event) {
  if (event.who == Who::application) return 0;
  return 1 + 2 * event.at.threadblock + (event.who == Who::proxy ? 1 : 0);
}

std::string name_of(const WitnessEvent& event) {
  if (event.who == Who::application) return "launches";
  const std::string block = "block " + std::to_string(event.at.threadblock);
  return event.who == Who::proxy ? "proxy of " + block : block;
}

Json at(const WitnessEvent& event, const char* phase, double time) {
  return {{"ph", phase}, {"pid", event.at.rank}, {"tid", thread_of(event)}, {"ts", time}};
}

}  // namespace

std::string trace_of(const Witness& witness) {
  Json list = Json::array();
  std::set<std::pair<uint32_t, uint32_t>> known;
  for (const WitnessEvent& event : witness.events) {
    const uint32_t rank = event.at.rank, thread = thread_of(event);
    const auto first = known.lower_bound({rank, 0});
    if (first == known.end() || first->first != rank)
      list.push_back(name_event(rank, "rank " + std::to_string(rank)));
    if (known.insert({rank, thread}).second) list.push_back(name_event(rank, name_of(event), thread));
  }
  for (size_t position = 0; position < witness.events.size(); ++position) {
    const WitnessEvent& event = witness.events[position];
    const double time = apart_us * double(position);
    Json arguments{{"launch", event.launch + 1}, {"rank", event.at.rank}};
    if (event.who != Who::application) {
      arguments["block"] = event.at.threadblock;
      arguments["op"] = event.at.op;
    }
    if (event.line.line) arguments["line"] = event.line.file + ":" + std::to_string(event.line.line);
    Json slice = at(event, "X", time);
    slice["name"] = (event.part == WitnessEvent::Part::missing ? "never: " : "") + event.text;
    slice["dur"] = long_us;
    slice["args"] = std::move(arguments);
    list.push_back(std::move(slice));
    if (event.mark.empty()) continue;
    Json mark = at(event, "i", time + long_us / 2);
    mark["name"] = event.mark;
    mark["s"] = "t";
    mark["cname"] = "terrible";
    list.push_back(std::move(mark));
  }
  for (size_t id = 0; id < witness.edges.size(); ++id) {
    const WitnessEdge& edge = witness.edges[id];
    // Arrows point forward in time, even in a cycle.
    for (const bool end : {false, true}) {
      const uint32_t position = end ? std::max(edge.from, edge.to) : std::min(edge.from, edge.to);
      Json arrow =
          at(witness.events[position], end ? "f" : "s", apart_us * position + (end ? 1 : long_us - 1));
      arrow["name"] = edge.publishes ? "happens before" : "is over before";
      arrow["cat"] = "order";
      arrow["id"] = id;
      if (end) arrow["bp"] = "e";
      list.push_back(std::move(arrow));
    }
  }
  return json_text(Json{{"displayTimeUnit", "ns"}, {"traceEvents", std::move(list)}}, 1) + "\n";
}

}  // namespace chorale::tools
