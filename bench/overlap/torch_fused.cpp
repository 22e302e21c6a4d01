#include "bench/overlap/torch_fused.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/common/processes.hpp"

namespace chorale::overlap {
namespace {

/// Limits the time of the script, so that a process that hangs does not stop the whole run.
constexpr int limit_s = 400;

std::string in_quotes(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string word_of(const TorchTime& one) {
  return fmt::format("{}:{},{},{}", one.operation == TorchOperation::gather ? "gather" : "scatter",
                     one.shape.m, one.shape.k, one.shape.n);
}

/// Runs a command, reads its output, and returns its exit status.
int read_all(const std::string& command, std::string& output) {
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (!pipe) return bench::did_not_run;
  char piece[4096];
  while (const size_t got = std::fread(piece, 1, sizeof piece, pipe)) output.append(piece, got);
  const int status = ::pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : int(bench::did_not_run);
}

/// Reads the script's lines and skips all others, because libraries may write to its standard output.
void add_times(const std::string& output, const std::vector<TorchTime>& wanted,
               std::vector<TorchTime>& times) {
  for (size_t begin = 0; begin < output.size();) {
    const size_t end = std::min(output.find('\n', begin), output.size());
    const auto line = nlohmann::json::parse(output.substr(begin, end - begin), nullptr, false);
    begin = end + 1;
    if (!line.is_object() || !line.contains("shape") || !line.contains("us") || !line["us"].is_number())
      continue;
    for (const TorchTime& one : wanted) {
      if (line["shape"] != word_of(one)) continue;
      const double ms = line["us"].get<double>() / 1000;
      const auto known = std::find_if(times.begin(), times.end(), [&](const TorchTime& other) {
        return other.operation == one.operation && other.shape == one.shape;
      });
      if (known == times.end()) {
        times.push_back({one.operation, one.shape, ms});
      } else {
        known->ms = std::min(known->ms, ms);
      }
    }
  }
}

}  // namespace

std::vector<TorchTime> time_torch(const std::string& interpreter, const std::string& script, int ranks,
                                  const std::vector<TorchTime>& wanted) {
  std::string command =
      fmt::format("timeout -k 5 {} {} {} {}", limit_s, in_quotes(interpreter), in_quotes(script), ranks);
  for (const TorchTime& one : wanted) command += " " + word_of(one);
  std::string output;
  const int status = wanted.empty() ? 0 : read_all(command, output);
  if (status == bench::result_wrong) throw bench::Wrong("PyTorch's fused operations gave a wrong result");
  std::vector<TorchTime> times;
  add_times(output, wanted, times);
  if (status)
    fmt::print(stderr, "{} of {} shapes were timed with PyTorch: {} ended with status {}\n", times.size(),
               wanted.size(), interpreter, status);
  return times;
}

}  // namespace chorale::overlap
