#include "tools/bench/peer_programs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "tools/command.hpp"
#include "tools/source.hpp"

namespace chorale::tools {
namespace {

/// Limits the time of a program, so that one that hangs does not stop the whole run.
constexpr int limit_s = 180, ended_by_timeout = 124;

constexpr const char* places[] = {"out-of-place", "in-place"};

/// Holds one line that a program wrote.
struct Time {
  uint64_t bytes = 0;
  Mode mode = Mode::eager;
  bool in_place = false;
  double us = 0;
  uint64_t wrong = 0;
};

/// Reads the times of a program. Lines that are none are left out, because libraries may write some too.
std::vector<Time> read_times(const std::string& file) {
  std::vector<Time> times;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) continue;
    const auto number = [&json](const char* key) {
      return json.contains(key) && json[key].is_number() ? json[key].get<double>() : -1;
    };
    const auto is = [&json](const char* key, const char* word) {
      return json.contains(key) && json[key] == word;
    };
    Time time;
    time.us = number("us");
    if (number("bytes") <= 0 || time.us <= 0) continue;
    time.bytes = uint64_t(number("bytes"));
    time.wrong = uint64_t(std::max(number("wrong"), 0.0));
    if (is("mode", mode_names[size_t(Mode::graph)])) {
      time.mode = Mode::graph;
    } else if (!is("mode", mode_names[size_t(Mode::eager)])) {
      continue;
    }
    time.in_place = is("place", places[1]);
    if (!time.in_place && !is("place", places[0])) continue;
    times.push_back(time);
  }
  return times;
}

/// Runs a program for one collective.
/// \return why it ended early; "" if it did not
std::string run(const BenchRequest& request, const std::string& command, const std::string& collective,
                const std::string& output, const TemporaryFolder&) {
  std::vector<std::string> modes;
  if (request.eager) modes.push_back(mode_names[size_t(Mode::eager)]);
  if (request.graph) modes.push_back(mode_names[size_t(Mode::graph)]);
  const std::vector<std::string> words = {"timeout",
                                          "-k",
                                          "5",
                                          std::to_string(limit_s),
                                          "sh",
                                          "-c",
                                          command + " \"$@\"",
                                          "peer",
                                          collective,
                                          "--ranks",
                                          std::to_string(request.ranks),
                                          "--dtype",
                                          dtype_name(request.dtype),
                                          "--bytes",
                                          fmt::format("{}", fmt::join(request.sizes, ",")),
                                          "--modes",
                                          fmt::format("{}", fmt::join(modes, ",")),
                                          "--calls",
                                          std::to_string(request.calls),
                                          "--output",
                                          output};
  const int status = run_command(words, false);
  if (status == ended_by_timeout) return fmt::format("'{}' did not end in {} s", command, limit_s);
  return status == 0 ? "" : fmt::format("'{}' ended with status {}", command, status);
}

void store(const BenchRequest& request, const BenchReports& reports, size_t which,
           const std::vector<Time>& times, const std::string& why) {
  const Subject& subject = request.subjects[which];
  for (size_t size = 0; size < request.sizes.size(); ++size) {
    if (!subject.cases[size].refused.empty()) continue;
    for (const Mode mode : all_modes) {
      const Time* best = nullptr;
      for (const Time& time : times) {
        if (time.bytes != request.sizes[size] || time.mode != mode || time.in_place != subject.in_place)
          continue;
        if (!best || std::pair(time.wrong, time.us) < std::pair(best->wrong, best->us)) best = &time;
      }
      const std::string note = best          ? ""
                               : why.empty() ? fmt::format("'{}' gives no time", subject.command)
                                             : why;
      for (uint32_t rank = 0; rank < request.ranks; ++rank) {
        Report& report = reports.at(rank, which, size, mode);
        report.us = best ? best->us : 0;
        if (rank == 0 && best) report.wrong = best->wrong;
        std::snprintf(report.note, sizeof report.note, "%s", note.c_str());
        report.finished = best != nullptr;
        report.done = true;
      }
    }
  }
}

}  // namespace

PeerProgram peer_program(const std::string& word) {
  const size_t end = word.find('=');
  if (end == std::string::npos || end == 0 || end + 1 == word.size())
    throw Failure(Exit::command_wrong, "--peer is '" + word + "', but must be NAME=COMMAND",
                  "for example --peer 'PyTorch=python3 bench/peers/torch_symmetric.py'");
  return {word.substr(0, end), word.substr(end + 1)};
}

void run_peer_programs(const BenchRequest& request, const BenchReports& reports) {
  std::set<std::pair<std::string, std::string>> done;
  for (const Subject& subject : request.subjects) {
    if (subject.peer != Peer::program || !done.emplace(subject.command, subject.collective).second) continue;
    const TemporaryFolder folder;
    const std::string output = folder.path() / "times";
    const std::string why = run(request, subject.command, subject.collective, output, folder);
    const std::vector<Time> times = read_times(output);
    for (size_t which = 0; which < request.subjects.size(); ++which) {
      const Subject& of = request.subjects[which];
      if (of.command == subject.command && of.collective == subject.collective)
        store(request, reports, which, times, why);
    }
  }
}

}  // namespace chorale::tools
