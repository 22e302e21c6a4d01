// Writes the results as a page of docs/.

#include <fmt/format.h>

#include <cstdlib>

#include "tools/bench/nccl.hpp"
#include "tools/bench/results.hpp"
#include "tools/command.hpp"

namespace chorale::tools {
namespace {

std::string cells(const BenchResults& results, const std::string& collective, bool in_place, size_t size,
                  Mode mode, bool nccl) {
  const Result* const best = results.best(collective, in_place, size, mode);
  if (!best) return nccl ? " - | - | - | - | - |" : " - | - | - |";
  std::string text = fmt::format(" {} | {} | {:.1f} |", results.subject(*best).name, time_word(best->us),
                                 bandwidth(results, *best).bus);
  if (!nccl) return text;
  const double other = results.nccl_us(collective, in_place, size, mode);
  return other > 0 ? text + fmt::format(" {} | {:.2f} |", time_word(other), other / best->us)
                   : text + " - | - |";
}

std::string table(const BenchResults& results, const std::string& collective, bool in_place, bool nccl) {
  std::string head = "| size |", rule = "| --: |";
  std::vector<Mode> modes;
  for (const Mode mode : {Mode::graph, Mode::eager}) {
    if (!results.any(collective, in_place, mode)) continue;
    modes.push_back(mode);
    const char* const name = mode_names[size_t(mode)];
    head += fmt::format(" plan, {0} | us, {0} | busbw GB/s |", name);
    rule += " :-- | --: | --: |";
    if (nccl) head += " NCCL us | ratio |", rule += " --: | --: |";
  }
  std::string text = head + "\n" + rule + "\n";
  for (size_t size = 0; size < results.request->sizes.size(); ++size) {
    text += fmt::format("| {} |", format_bytes(results.request->sizes[size]));
    for (const Mode mode : modes) text += cells(results, collective, in_place, size, mode, nccl);
    text += "\n";
  }
  return text;
}

}  // namespace

std::string markdown(const BenchResults& results, const std::string& command) {
  const BenchRequest& request = *results.request;
  std::string text =
      "# Benchmarks\n\nWritten by\n\n    " + command + "\n\n| machine | value |\n| --- | --- |\n";
  bool nccl = false;
  for (const auto& [name, value] : results.facts) {
    text += fmt::format("| {} | {} |\n", name, value);
    nccl = nccl || name == "nccl";
  }
  text += fmt::format("| ranks | {}, {} |\n| type | {} |\n\n", request.ranks,
                      request.processes ? "one process each" : "one thread each", dtype_name(request.dtype));
  text += fmt::format(
      "Each number is the fastest plan's time of one call, the slowest rank's: the median of five means. "
      "*graph*: {} calls, each after the "
      "other, in one CUDA graph\nthat is replayed (fewer where that takes too long); *eager*: as many "
      "launches in a row. "
      "busbw is as nccl-tests define it. Every plan's result\nwas compared with an oracle, element for "
      "element, "
      "before and after it was timed.\n",
      request.calls);
  if (!results.complete) text += "\n**The run has not ended: these are its results so far.**\n";
  if (nccl)
    text += fmt::format(
        "\nNCCL ran in its default mode in the same run, {}; ratio is its time divided by ours.\n",
        multicast_words(std::getenv("NCCL_NVLS_ENABLE")));
  for (const std::string& collective : results.collectives()) {
    for (const bool in_place : {false, true}) {
      if (!results.any(collective, in_place, Mode::eager) && !results.any(collective, in_place, Mode::graph))
        continue;
      text += fmt::format("\n## {}, {} ranks{}\n\n", collective, request.ranks, in_place ? ", in place" : "");
      text += table(results, collective, in_place, nccl);
    }
  }
  const std::vector<std::string> missing = notes(results);
  if (!missing.empty()) text += "\n## Not timed\n\n";
  for (const std::string& note : missing) text += "- " + note.substr(0, note.find('\n')) + "\n";
  return text;
}

}  // namespace chorale::tools
