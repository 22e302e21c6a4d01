#include "tools/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "chorale/usage_error.hpp"
#include "tools/command.hpp"
#include "tools/words.hpp"

namespace chorale::tools {
namespace {

constexpr size_t most_compared_lines = 20, most_gaps = 3, most_single = 5;

constexpr const char* kind_words[] = {"work", "packets", "turns", "waits"};  // in the order of TimeKind

const char* word_of(TimeKind kind) { return kind_words[size_t(kind)]; }

/// Returns "12.00 us, predicted 10.00: 2.00 us more, 1.20 times as long".
std::string beside(double measured_us, double predicted_us) {
  const double gap = measured_us - predicted_us;
  std::string text = fmt::format("{:.2f} us, predicted {:.2f}: ", measured_us, predicted_us);
  if (gap == 0) return text + "no gap";
  text += fmt::format("{:.2f} us {}", std::abs(gap), gap > 0 ? "more" : "less");
  if (predicted_us > 0) text += fmt::format(", {:.2f} times as long", measured_us / predicted_us);
  return text;
}

std::string beside(const BlockTimes& measured, const BlockTimes& predicted) {
  return beside(us(measured.median_ns), us(predicted.median_ns));
}

/// Returns "put ring.cpp:38".
std::string place_words(const ProfilePlace& place) {
  return std::string(place.name) + (place.line.line == 0 ? "" : " " + line_words(place.line));
}

/// Returns "with nop, signal ring.cpp:12", or "".
std::string with_words(const ComparedLine& line) {
  std::vector<std::string> others;
  for (const ProfilePlace& other : line.with)
    others.push_back(other.line == line.place.line ? std::string(other.name) : place_words(other));
  return others.empty() ? "" : "with " + join(others);
}

std::string lines_text(const std::vector<ComparedLine>& lines) {
  std::vector<std::vector<std::string>> rows = {{"gap us", "median us", "predicted", "longest us",
                                                 "predicted", "blocks", "longest at", "line", "operation",
                                                 "kind"}};
  for (const ComparedLine& line : lines) {
    if (rows.size() > most_compared_lines) break;
    rows.push_back({fmt::format("{:+.2f}", double(line.gap_ns()) / 1e3),
                    fmt::format("{:.2f}", us(line.measured.median_ns)),
                    fmt::format("{:.2f}", us(line.predicted.median_ns)),
                    fmt::format("{:.2f}", us(line.measured.longest_ns)),
                    fmt::format("{:.2f}", us(line.predicted.longest_ns)), std::to_string(line.blocks),
                    fmt::format("rank {}, block {}", line.measured.rank, line.measured.block),
                    line_words(line.place.line), std::string(line.place.name), word_of(line.kind),
                    with_words(line)});
  }
  std::string text = "us that a thread block is at a line, median and longest:\n" + aligned(rows, 6);
  if (lines.size() > most_compared_lines)
    text += fmt::format("  and {} more\n", count(lines.size() - most_compared_lines, "line"));
  return text;
}

/// Lists the lines that only one side has, the longest first.
std::string single_text(const char* which, const std::vector<ComparedLine>& lines,
                        const BlockTimes ComparedLine::*times) {
  if (lines.empty()) return "";
  std::vector<std::string> words;
  for (const ComparedLine& line : lines) {
    if (words.size() == most_single) break;
    words.push_back(fmt::format("{} ({:.2f} us)", place_words(line.place), us((line.*times).median_ns)));
  }
  if (lines.size() > most_single) words.push_back(count(lines.size() - most_single, "more line"));
  return fmt::format("{}: {}\n", which, join(words));
}

std::string kinds_text(const Comparison& comparison) {
  std::string text;
  for (const ComparedKind& kind : comparison.kinds) {
    text += fmt::format("{}{} {:.2f}, predicted {:.2f}", text.empty() ? "" : "; ", word_of(kind.kind),
                        us(kind.measured.median_ns), us(kind.predicted.median_ns));
  }
  return "all us of a thread block, median: " + text + "\n";
}

std::string gaps_text(const std::vector<ComparedLine>& lines) {
  std::vector<std::string> gaps;
  for (const ComparedLine& line : lines) {
    if (line.kind == TimeKind::waits || line.gap_ns() == 0 || gaps.size() == most_gaps) break;
    std::string words = place_words(line.place) + ": " + beside(line.measured, line.predicted);
    if (line.kind == TimeKind::packets) words += "; it may have waited for its packets";
    if (line.kind == TimeKind::turns) words += "; all turns of a pipeline but the last, with their waits";
    gaps.push_back("  " + words + "\n");
  }
  if (gaps.empty()) return "no gaps, without waits\n";
  const char* const numbers[] = {"", "largest gap", "two largest gaps", "three largest gaps"};
  std::string text = fmt::format("the {}, in a median thread block, without waits:\n", numbers[gaps.size()]);
  for (const std::string& gap : gaps) text += gap;
  return text;
}

/// Writes the row of waits. Their time is that of the operations they wait for.
std::string waits_text(const Comparison& comparison) {
  const auto all = std::find_if(comparison.kinds.begin(), comparison.kinds.end(),
                                [](const ComparedKind& kind) { return kind.kind == TimeKind::waits; });
  const auto line = std::find_if(comparison.lines.begin(), comparison.lines.end(),
                                 [](const ComparedLine& one) { return one.kind == TimeKind::waits; });
  if (all == comparison.kinds.end() || line == comparison.lines.end()) return "";
  std::string text = "waits, in a median thread block: " + beside(all->measured, all->predicted) + "\n";
  if (line->gap_ns() == 0) return text;
  return text + "  the largest gap of them at " + place_words(line->place) + ": " +
         beside(line->measured, line->predicted) +
         "\n  waits depend on other thread blocks, on signals in transit, and on ranks that began late, "
         "which "
         "is not predicted\n";
}

}  // namespace

std::string text_of(const Comparison& comparison, const ComparedCall& of) {
  std::string text =
      fmt::format("compared with the prediction for {}: launch {} of {}, {} bytes\n", of.machine.title(),
                  comparison.launch, of.plan.name, format_bytes(of.measured.arguments.bytes));
  text += "  the launch: " + beside(us(comparison.measured_ns), us(comparison.predicted_ns)) + "\n";
  if (of.measured.in_a_row_us) {
    text += fmt::format("  a call of many in a row, {}: {}\n",
                        of.measured.eager ? "launched one by one" : "in a CUDA graph",
                        beside(*of.measured.in_a_row_us, of.predicted_us));
  }
  return text + lines_text(comparison.lines) +
         single_text("only measured, because these cost nothing in the prediction", comparison.only_measured,
                     &ComparedLine::measured) +
         single_text("only predicted, without a span", comparison.only_predicted, &ComparedLine::predicted) +
         kinds_text(comparison) + gaps_text(comparison.lines) + waits_text(comparison);
}

std::string text_beside_prediction(const Plan& plan, const ProfiledCall& call,
                                   std::span<const TraceSpan> spans, Clocks clocks, Simulator& simulator,
                                   const Machine& machine) {
  const Arguments& arguments = call.arguments;
  Simulation predicted;
  try {
    predicted = simulator.simulate({.bytes = arguments.bytes,
                                    .dtype = arguments.dtype,
                                    .packet = arguments.packet.value(),
                                    .eager = call.eager,
                                    .spans = true},
                                   machine);
  } catch (const UsageError& refused) {
    return fmt::format("nothing is predicted for {}: {}\n", machine.title(), refused.what());
  }
  return text_of(compare(plan, arguments.bytes, spans, clocks, predicted.spans),
                 {plan, call, machine, predicted.ns / 1e3});
}

}  // namespace chorale::tools
