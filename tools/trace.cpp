#include "tools/trace.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "chorale/json_text.hpp"
#include "tools/command.hpp"
#include "tools/sent_spans.hpp"

namespace chorale::tools {
namespace {

using Json = nlohmann::ordered_json;

/// Adds the event's line. Names of files may not be valid UTF-8.
void add(std::string& lines, const Json& event) { lines += (lines.empty() ? "" : ",\n") + json_text(event); }

/// Returns the lines of a rank's spans.
/// \param start_ns  the time that counts as 0
std::string lines_of(const std::vector<TraceSpan>& spans, uint32_t rank, uint64_t start_ns) {
  std::string lines;
  if (spans.empty()) return lines;
  add(lines, name_event(rank, "rank " + std::to_string(rank)));
  uint32_t blocks = 0;
  for (const TraceSpan& span : spans) {
    for (; blocks <= span.block; ++blocks)
      add(lines, name_event(rank, "block " + std::to_string(blocks), blocks));
    Json arguments{
        {"plan", span.plan}, {"launch", span.launch}, {"rank", rank}, {"block", span.block}, {"op", span.op}};
    if (span.bytes != 0) arguments["bytes"] = span.bytes;
    if (span.line.line != 0) arguments["line"] = span.line.file + ":" + std::to_string(span.line.line);
    add(lines, {{"ph", "X"},
                {"name", span.name},
                {"pid", rank},
                {"tid", span.block},
                {"ts", double(span.begin_ns - start_ns) / 1e3},
                {"dur", double(span.end_ns - span.begin_ns) / 1e3},
                {"args", std::move(arguments)}});
  }
  return lines;
}

/// Returns the time at which the first of these spans began; without spans, the largest time.
uint64_t first_of(const std::vector<TraceSpan>& spans) {
  uint64_t first = ~uint64_t{0};
  for (const TraceSpan& span : spans) first = std::min(first, span.begin_ns);
  return first;
}

uint64_t first_of_all(World& world, uint64_t mine) {
  uint64_t first = mine;
  for (const std::vector<std::byte>& other : world.allgather(std::as_bytes(std::span(&mine, 1)))) {
    uint64_t one = 0;
    std::memcpy(&one, other.data(), sizeof one);
    first = std::min(first, one);
  }
  return first;
}

std::string file_of(const std::string& lines, uint32_t ranks, const std::string& backend) {
  return "{\"displayTimeUnit\":\"ns\",\"otherData\":" +
         json_text(Json{{"ranks", ranks}, {"backend", backend}}) + ",\"traceEvents\":[\n" + lines + "\n]}\n";
}

}  // namespace

Json name_event(uint32_t rank, std::string name, std::optional<uint32_t> thread) {
  Json event{{"ph", "M"},
             {"name", thread ? "thread_name" : "process_name"},
             {"pid", rank},
             {"args", {{"name", std::move(name)}}}};
  if (thread) event["tid"] = *thread;
  return event;
}

void need_trace_file(const std::string& path) {
  if (path.empty()) return;
  if (path == "-") {
    throw Failure(Exit::command_wrong, "--trace needs a file, because results go to standard output",
                  "name one, such as trace.json");
  }
  need_writable(path);
}

void write_trace(const std::vector<TraceSpan>& spans, uint32_t ranks, const std::string& path,
                 const std::string& backend) {
  const bool one_clock = backend != "cuda";
  std::vector<std::vector<TraceSpan>> by_rank(ranks);
  for (const TraceSpan& span : spans) by_rank[span.rank].push_back(span);
  std::string lines;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (by_rank[rank].empty()) continue;
    lines += (lines.empty() ? "" : ",\n") +
             lines_of(by_rank[rank], rank, first_of(one_clock ? spans : by_rank[rank]));
  }
  write_output(path, file_of(lines, ranks, backend));
}

void trace_to(Config& config, const std::string& path) {
  if (path.empty()) return;
  need_trace_file(path);
  config.trace = std::max(config.trace.value, 1u);
}

void write_trace(World& world, const Executor& executor, const Config& config, const std::string& path) {
  const std::vector<TraceSpan> spans = executor.trace();
  const uint64_t first = first_of(spans);
  const bool one_clock = config.backend.value == "cpu";
  const std::string mine =
      lines_of(spans, uint32_t(world.rank()), one_clock ? first_of_all(world, first) : first);
  const auto all = world.allgather(std::as_bytes(std::span(mine)));
  std::optional<std::string> wrong;
  if (world.rank() == 0) {
    std::string lines;
    for (const std::vector<std::byte>& of : all) {
      if (of.empty()) continue;
      lines += lines.empty() ? "" : ",\n";
      lines.append(reinterpret_cast<const char*>(of.data()), of.size());
    }
    try {
      if (lines.empty()) {
        wrong =
            "nothing was traced: no rank has run an operation, because the message has no bytes or the plan "
            "has no operations";
      } else {
        write_output(path, file_of(lines, uint32_t(world.ranks()), config.backend.value));
      }
    } catch (const Failure& failure) {
      wrong = failure.what();
    }
  }
  world.agree(wrong);
}

StoppedTrace::StoppedTrace() : file_(std::tmpfile()) {
  if (!file_) {
    throw Failure(Exit::run_failed,
                  "--trace: no temporary file for what ranks report: " + std::string(std::strerror(errno)));
  }
}

void StoppedTrace::add(const Executor& executor) const noexcept {
  try {
    const std::vector<SentSpan> spans = to_send(executor.trace());
    // We write everything with one call. Otherwise parts of several ranks would mix, because processes share
    // one offset in the file.
    [[maybe_unused]] const ssize_t written =
        ::write(::fileno(file_.get()), spans.data(), spans.size() * sizeof(SentSpan));
  } catch (...) {
  }
}

void StoppedTrace::write(const Plan& plan, const Config& config, const std::string& path) const {
  std::rewind(file_.get());
  std::vector<TraceSpan> spans;
  std::array<std::byte, sizeof(SentSpan)> one;
  while (std::fread(one.data(), one.size(), 1, file_.get()) == 1) add_sent(spans, one, plan);
  if (!spans.empty()) write_trace(spans, plan.ranks(), path, config.backend.value);
}

}  // namespace chorale::tools
