#include "tools/view/trace_picture.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "tools/command.hpp"
#include "tools/view/plan_picture.hpp"

namespace chorale::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* hint =
    "chorale run --trace FILE, bench --trace FILE and simulate --trace FILE write traces";

/// Holds a slice of a trace.
struct Slice {
  std::string name, plan, line;
  uint32_t rank = 0, thread = 0;
  int64_t op = -1;
  uint64_t launch = 0;
  uint64_t bytes = 0;          ///< size of the message; 0: the trace does not say it
  int64_t begin = 0, end = 0;  ///< ns
};

struct Trace {
  uint32_t ranks = 0;   ///< of the plan; 0: the trace does not say it
  std::string backend;  ///< see write_trace(); empty: the trace does not say it
  std::vector<Slice> slices;
  std::map<std::pair<uint32_t, uint32_t>, std::string> threads;
};

Failure broken(const std::string& file, const std::string& why) {
  return Failure(Exit::command_wrong, file + ": " + why, hint);
}

/// Reads a number of an event that is there and is in its range.
template <class Number>
Number number_at(const Json& event, const char* key, Number otherwise) {
  const auto found = event.find(key);
  return found != event.end() && found->is_number_unsigned() ? Number(found->get<uint64_t>()) : otherwise;
}

std::string text_at(const Json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() && found->is_string() ? found->get<std::string>() : "";
}

Trace read(const std::string& text, const std::string& file) {
  const Json all = Json::parse(text, nullptr, false);
  if (!all.is_object() || !all.contains("traceEvents") || !all["traceEvents"].is_array())
    throw broken(file, "it is not a trace");
  Trace trace;
  if (const auto other = all.find("otherData"); other != all.end() && other->is_object()) {
    trace.ranks = number_at(*other, "ranks", 0u);
    trace.backend = text_at(*other, "backend");
  }
  for (const Json& event : all["traceEvents"]) {
    if (!event.is_object()) throw broken(file, "an event of the trace is not an object");
    const std::string phase = text_at(event, "ph");
    const uint32_t rank = number_at(event, "pid", 0u), thread = number_at(event, "tid", 0u);
    const Json empty = Json::object();
    const auto found = event.find("args");
    const Json& arguments = found != event.end() && found->is_object() ? *found : empty;
    if (phase == "M" && text_at(event, "name") == "thread_name")
      trace.threads[{rank, thread}] = text_at(arguments, "name");
    if (phase != "X") continue;
    const auto ts = event.find("ts"), dur = event.find("dur");
    if (ts == event.end() || !ts->is_number() || dur == event.end() || !dur->is_number())
      throw broken(file, "a slice of the trace has no time");
    Slice slice;
    slice.name = text_at(event, "name");
    slice.plan = text_at(arguments, "plan");
    slice.line = text_at(arguments, "line");
    slice.rank = rank;
    slice.thread = thread;
    slice.op = int64_t(number_at(arguments, "op", uint64_t(UINT32_MAX)));
    slice.launch = number_at(arguments, "launch", uint64_t(0));
    slice.bytes = number_at(arguments, "bytes", uint64_t(0));
    const double begin = std::max(ts->get<double>(), 0.0) * 1e3;
    const double end = begin + std::max(dur->get<double>(), 0.0) * 1e3;
    if (end > 1e15) throw broken(file, "a slice of the trace ends after more than ten days");
    slice.begin = std::llround(begin);
    slice.end = std::llround(end);
    trace.slices.push_back(std::move(slice));
  }
  return trace;
}

/// Returns the file and the number of "ring.cpp:12".
SourceLine line_of(const std::string& words) {
  const size_t colon = words.rfind(':');
  SourceLine line;
  if (colon == words.npos) return line;
  const char* const end = words.data() + words.size();
  const auto [stop, error] = std::from_chars(words.data() + colon + 1, end, line.line);
  if (error != std::errc() || stop != end) return {};
  line.file = words.substr(0, colon);
  return line;
}

PictureKind kind_of(const std::string& name) {
  const int code = find_opcode(name);
  if (code < 0) {
    if (name.find("wait") != name.npos) return PictureKind::waits;
    return name.find("signal") != name.npos ? PictureKind::signals : PictureKind::moves;
  }
  return picture_kind(info(Opcode(code)));
}

}  // namespace

bool is_trace(std::string_view text) {
  constexpr std::string_view key = "\"traceEvents\"";
  const size_t at = text.substr(0, 4096).find(key);
  if (at == text.npos) return false;
  const size_t next = text.find_first_not_of(" \t\r\n", at + key.size());
  return next != text.npos && text[next] == ':';
}

std::string trace_title(const std::string& backend, const std::string& file) {
  const std::string name = std::filesystem::path(file).filename().string();
  if (backend == "simulated") return "predicted: " + name;
  return std::string("measured") +
         (backend == "cpu"    ? " on the CPU"
          : backend == "cuda" ? " on GPUs"
                              : "") +
         ": " + name;
}

std::vector<TraceSpan> spans_of(const Plan& plan, const std::string& text, const std::string& file,
                                uint64_t bytes, std::string* backend) {
  const Trace trace = read(text, file);
  if (backend) *backend = trace.backend;
  if (trace.ranks != 0 && trace.ranks != plan.ranks()) {
    throw Failure(Exit::command_wrong,
                  file + " is of a plan of " + count(trace.ranks, "rank") + ", but plan '" + plan.name +
                      "' has " + std::to_string(plan.ranks()),
                  "the trace must be of the same plan");
  }
  uint64_t last = 0;
  std::set<std::string> others;
  std::set<uint64_t> sizes;
  // Launches are counted for each size of the message.
  const auto is_wanted = [&](const Slice& slice) {
    return slice.plan == plan.name && (slice.bytes == 0 || slice.bytes == bytes);
  };
  for (const Slice& slice : trace.slices) {
    if (is_wanted(slice))
      last = std::max(last, slice.launch);
    else if (slice.plan == plan.name)
      sizes.insert(slice.bytes);
    else
      others.insert(slice.plan);
  }
  std::vector<TraceSpan> spans;
  for (const Slice& slice : trace.slices) {
    if (!is_wanted(slice) || slice.launch != last) continue;
    if (slice.rank >= plan.gpus.size() || slice.thread >= plan.gpus[slice.rank].threadblocks.size() ||
        size_t(slice.op) >= plan.gpus[slice.rank].threadblocks[slice.thread].ops.size()) {
      throw Failure(Exit::command_wrong,
                    file + " has operation " + std::to_string(slice.op) + " of rank " +
                        std::to_string(slice.rank) + ", thread block " + std::to_string(slice.thread) +
                        ", which plan '" + plan.name + "' does not have",
                    "the trace must be of the same plan");
    }
    const Op& op = plan.gpus[slice.rank].threadblocks[slice.thread].ops[size_t(slice.op)];
    const SourceLine line = plan.line_of(op), traced = line_of(slice.line);
    if (slice.name != info(op.code).name || (line.line && traced.line && line.line != traced.line)) {
      throw Failure(Exit::command_wrong,
                    file + " has " + slice.name + (slice.line.empty() ? "" : " of " + slice.line) +
                        " as operation " + std::to_string(slice.op) + " of rank " +
                        std::to_string(slice.rank) + ", thread block " + std::to_string(slice.thread) +
                        ", but plan '" + plan.name + "' has " + std::string(info(op.code).name) +
                        (line.line ? " of " + line.file + ":" + std::to_string(line.line) : ""),
                    "the trace must be of the same plan");
    }
    spans.push_back({plan.name, slice.rank, slice.thread, uint32_t(slice.op), info(op.code).name,
                     plan.line_of(op), slice.launch, uint64_t(slice.begin), uint64_t(slice.end), bytes});
  }
  if (spans.empty() && !sizes.empty()) {
    std::string words;
    for (const uint64_t size : sizes) words += (words.empty() ? "" : ", ") + format_bytes(size);
    throw Failure(Exit::command_wrong,
                  file + " has no launch of plan '" + plan.name + "' with " + format_bytes(bytes) + " bytes",
                  "it has messages of " + words + " bytes: pass one of these sizes as --bytes");
  }
  if (spans.empty()) {
    throw Failure(Exit::command_wrong, file + " has no launch of plan '" + plan.name + "'",
                  others.empty()
                      ? hint
                      : "it has launches of " + join(std::vector<std::string>(others.begin(), others.end())));
  }
  return spans;
}

Picture picture_of_trace(const std::string& text, const std::string& file) {
  Trace trace = read(text, file);
  if (trace.slices.empty()) throw broken(file, "the trace has no slices");
  std::stable_sort(trace.slices.begin(), trace.slices.end(), [](const Slice& a, const Slice& b) {
    return std::tuple(a.rank, a.thread, a.begin) < std::tuple(b.rank, b.thread, b.begin);
  });
  Picture picture;
  picture.kind = "trace";
  picture.name = trace.slices.front().plan;
  if (picture.name.empty()) picture.name = file;
  picture.file = file;
  picture.headline = "trace of " + count(trace.slices.size(), "operation");
  PictureTimes times{trace_title(trace.backend, file), false, {}};
  std::set<uint32_t> ranks;
  for (const Slice& slice : trace.slices) {
    const auto named = trace.threads.find({slice.rank, slice.thread});
    const std::string row =
        named == trace.threads.end() ? "thread " + std::to_string(slice.thread) : named->second;
    if (picture.rows.empty() || picture.rows.back().rank != slice.rank || picture.rows.back().name != row)
      picture.rows.push_back({slice.rank, row, {}});
    PictureOp op;
    op.name = slice.name;
    op.kind = kind_of(slice.name);
    op.text = slice.name;
    if (slice.op != UINT32_MAX) op.text += ", operation " + std::to_string(slice.op);
    if (slice.launch) op.text += " of launch " + std::to_string(slice.launch);
    op.line = line_of(slice.line);
    picture.rows.back().ops.push_back(std::move(op));
    times.spans.push_back({slice.begin, slice.end});
    ranks.insert(slice.rank);
  }
  picture.ranks = uint32_t(ranks.size());
  picture.times.push_back(std::move(times));
  picture.tracks.emplace_back("measured");
  return picture;
}

}  // namespace chorale::tools
