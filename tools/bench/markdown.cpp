// Writes the results as a page of docs/.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tools/bench/nccl.hpp"
#include "tools/bench/results.hpp"
#include "tools/command.hpp"

namespace chorale::tools {
namespace {

std::string cells(const BenchResults& results, const std::string& collective, bool in_place, size_t size,
                  Mode mode, bool peers) {
  const Result* const best = results.best(collective, in_place, size, mode);
  if (!best) {
    const int columns = 3 + (results.knows_defaults() ? 1 : 0) + (peers ? 3 : 0);
    std::string none;
    for (int column = 0; column < columns; ++column) none += " - |";
    return none;
  }
  std::string text = fmt::format(" {} | {} | {:.1f} |", plan_words(results, *best), time_word(best->us),
                                 bandwidth(results, *best).bus);
  if (results.knows_defaults()) {
    const Result* const by_default = results.by_default(collective, in_place, size, mode);
    text += by_default ? fmt::format(" {} |", time_word(by_default->us)) : " - |";
  }
  if (!peers) return text;
  const Result* const peer = results.best_peer(collective, in_place, size, mode);
  return peer ? text + fmt::format(" {} | {} | {:.2f} |", results.subject(*peer).name, time_word(peer->us),
                                   peer->us / best->us)
              : text + " - | - | - |";
}

std::string table(const BenchResults& results, const std::string& collective, bool in_place, bool peers) {
  std::string head = "| size |", rule = "| --: |";
  std::vector<Mode> modes;
  for (const Mode mode : {Mode::graph, Mode::eager}) {
    if (!results.any(collective, in_place, mode)) continue;
    modes.push_back(mode);
    const char* const name = mode_names[size_t(mode)];
    head += fmt::format(" plan, {0} | us, {0} | busbw GB/s |", name);
    rule += " :-- | --: | --: |";
    if (results.knows_defaults()) head += " default us |", rule += " --: |";
    if (peers) head += " best peer | us | ratio |", rule += " :-- | --: | --: |";
  }
  std::string text = head + "\n" + rule + "\n";
  for (size_t size = 0; size < results.request->sizes.size(); ++size) {
    text += fmt::format("| {} |", format_bytes(results.request->sizes[size]));
    for (const Mode mode : modes) text += cells(results, collective, in_place, size, mode, peers);
    text += "\n";
  }
  return text;
}

/// Returns the bandwidth of the fastest plan within each limit of thread blocks beside NCCL's with the same
/// limit, and which plans these are.
std::string table_by_limit(const BenchResults& results, const std::string& collective, bool in_place,
                           Mode mode) {
  const BenchRequest& request = *results.request;
  std::string head = "| size |", rule = "| --: |", names_head = head, names_rule = rule, rows, names;
  for (const uint32_t limit : request.limits) {
    head += fmt::format(" {0} blocks | NCCL, {0} |", limit), rule += " --: | --: |";
    names_head += fmt::format(" {} blocks |", limit), names_rule += " :-- |";
  }
  for (size_t size = 0; size < request.sizes.size(); ++size) {
    const std::string begin = fmt::format("| {} |", format_bytes(request.sizes[size]));
    rows += begin, names += begin;
    for (const uint32_t limit : request.limits) {
      const Result* const best = results.best(collective, in_place, size, mode, false, limit);
      const Result* const nccl = results.nccl_within(collective, in_place, size, mode, limit);
      for (const Result* const one : {best, nccl})
        rows += one ? fmt::format(" {:.1f} |", bandwidth(results, *one).bus) : " - |";
      names += fmt::format(" {} |", best ? plan_words(results, *best) : "-");
    }
    rows += "\n", names += "\n";
  }
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", head, rule, rows, names_head, names_rule, names);
}

/// Returns the sections of tables by limits of thread blocks.
std::string sections_by_limit(const BenchResults& results) {
  const BenchRequest& request = *results.request;
  std::string text;
  if (request.limits.size() < 2) return text;
  for (const std::string& collective : results.collectives()) {
    for (const bool in_place : {false, true}) {
      // Graphs show what the plans cost.
      const Mode mode = results.any(collective, in_place, Mode::graph) ? Mode::graph : Mode::eager;
      if (!results.any(collective, in_place, mode)) continue;
      text += fmt::format("\n## {} by thread blocks, {} ranks{}\n\n", collective, request.ranks,
                          in_place ? ", in place" : "");
      text += fmt::format(
          "Busbw in GB/s ({}) of the fastest plan with at most so many thread blocks, and of NCCL with at "
          "most "
          "so many CTAs. The second table names the plans.\n\n",
          mode_names[size_t(mode)]);
      text += table_by_limit(results, collective, in_place, mode);
    }
  }
  return text;
}

/// Returns the names of the peers, each once.
std::vector<std::string> peers_of(const BenchRequest& request) {
  std::vector<std::string> names;
  for (const Subject& subject : request.subjects) {
    if (!subject.is_plan() && std::find(names.begin(), names.end(), subject.name) == names.end())
      names.push_back(subject.name);
  }
  return names;
}

}  // namespace

std::string markdown(const BenchResults& results, const std::string& command) {
  const BenchRequest& request = *results.request;
  std::string text =
      "# Benchmarks\n\nWritten by\n\n    " + command + "\n\n| machine | value |\n| --- | --- |\n";
  for (const auto& [name, value] : results.facts) text += fmt::format("| {} | {} |\n", name, value);
  const std::vector<std::string> peers = peers_of(request);
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
  if (results.knows_defaults())
    text += "\n*default* is the time of the plan that an application gets without a table.\n";
  if (!results.complete) text += "\n**The run has not ended: these are its results so far.**\n";
  if (!peers.empty())
    text += fmt::format(
        "\nThese peers ran in the same run, with {}: {}. Ratio is the time of the fastest one divided by "
        "ours.\n",
        multicast_words(std::getenv("NCCL_NVLS_ENABLE")), fmt::join(peers, ", "));
  for (const std::string& collective : results.collectives()) {
    for (const bool in_place : {false, true}) {
      if (!results.any(collective, in_place, Mode::eager) && !results.any(collective, in_place, Mode::graph))
        continue;
      text += fmt::format("\n## {}, {} ranks{}\n\n", collective, request.ranks, in_place ? ", in place" : "");
      text += table(results, collective, in_place, !peers.empty());
    }
  }
  text += sections_by_limit(results);
  const std::vector<std::string> missing = notes(results);
  if (!missing.empty()) text += "\n## Not timed\n\n";
  for (const std::string& note : missing) text += "- " + note.substr(0, note.find('\n')) + "\n";
  return text;
}

}  // namespace chorale::tools
