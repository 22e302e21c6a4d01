#include "tools/trace.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "chorale/json_text.hpp"

namespace chorale::tools {
namespace {

using Json = nlohmann::ordered_json;

Json events_of(const std::vector<TraceSpan>& spans, int rank) {
  Json events = Json::array();
  if (spans.empty()) return events;
  uint64_t first = ~uint64_t{0};
  for (const TraceSpan& span : spans) first = std::min(first, span.begin_ns);
  const auto microseconds = [](uint64_t ns) { return double(ns) / 1e3; };
  events.push_back({{"ph", "M"},
                    {"name", "process_name"},
                    {"pid", rank},
                    {"args", {{"name", "rank " + std::to_string(rank)}}}});
  uint32_t named = 0;
  for (const TraceSpan& span : spans) {
    for (; named <= span.block; ++named) {
      events.push_back({{"ph", "M"},
                        {"name", "thread_name"},
                        {"pid", rank},
                        {"tid", named},
                        {"args", {{"name", "block " + std::to_string(named)}}}});
    }
    Json arguments{{"plan", span.plan}, {"launch", span.launch}, {"op", span.op}};
    if (span.line.line != 0) arguments["line"] = span.line.file + ":" + std::to_string(span.line.line);
    events.push_back({{"ph", "X"},
                      {"name", span.name},
                      {"pid", rank},
                      {"tid", span.block},
                      {"ts", microseconds(span.begin_ns - first)},
                      {"dur", microseconds(span.end_ns - span.begin_ns)},
                      {"args", std::move(arguments)}});
  }
  return events;
}

}  // namespace

void write_trace(World& world, const Executor& executor, const std::string& path) {
  const std::string mine = json_text(events_of(executor.trace(), world.rank()));
  const auto all = world.allgather(std::as_bytes(std::span(mine)));
  std::optional<std::string> wrong;
  if (world.rank() == 0) {
    Json events = Json::array();
    for (const auto& bytes : all) {
      for (Json& event :
           Json::parse(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()))) {
        events.push_back(std::move(event));
      }
    }
    if (events.empty()) {
      wrong = "nothing was traced: traces are of the backend 'cuda', with CHORALE_TRACE or --trace";
    } else {
      std::ofstream out(path);
      out << json_text(Json{{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}}, 1) << '\n';
      out.close();
      if (!out) wrong = "'" + path + "' cannot be written: is there room, and may you write there?";
    }
  }
  world.agree(wrong);
}

}  // namespace chorale::tools
