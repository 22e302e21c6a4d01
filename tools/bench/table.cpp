// Writes the results as a table of text.

#include <fmt/format.h>

#include <algorithm>

#include "tools/bench/results.hpp"

namespace chorale::tools {
namespace {

class Table {
 public:
  Table(const BenchResults& results, const TableStyle& style) : results_(results), style_(style) {
    for (const Subject& subject : results.request->subjects) nccl_ = nccl_ || (subject.nccl && style.times);
    for (const Result& result : results.all) {
      if (!results.subject(result).nccl)
        plan_width_ = std::max(plan_width_, plan_words(results, result).size());
    }
  }

  std::string write() {
    for (const auto& [name, value] : results_.facts) {
      if (style_.times) text_ += fmt::format("# {}: {}\n", name, value);
    }
    for (const std::string& collective : results_.collectives()) section(collective);
    if (!results_.complete) text_ += "# the run was cut off: these are its results so far\n";
    for (const std::string& note : notes(results_)) text_ += "# " + note + "\n";
    return std::move(text_);
  }

 private:
  void section(const std::string& collective) {
    const BenchRequest& request = *results_.request;
    text_ += fmt::format("# {}, {} ranks as {}, {}\n", collective, request.ranks,
                         request.processes ? "processes" : "threads", request.backend);
    const std::string left = fmt::format("#{:>12}{:>14}{:>10}{:>8}{:>6}{:>7}", "", "", "", "", "", "");
    const size_t half = half_head("", "", "", "", "", "", "").size();
    std::string lines = left + fmt::format("{:>{}}{:>{}}\n", "out-of-place", half, "in-place", half);
    const std::string head = half_head("time", "algbw", "busbw", "#wrong", "NCCL", "ratio", "plan");
    lines += fmt::format("#{:>12}{:>14}{:>10}{:>8}{:>6}{:>7}{}{}\n", "size", "count", "type", "redop", "root",
                         "mode", head, head);
    if (style_.times) {
      const std::string units = half_head("(us)", "(GB/s)", "(GB/s)", "", "(us)", "", "");
      lines += fmt::format("#{:>12}{:>14}{:>10}{:>8}{:>6}{:>7}{}{}\n", "(B)", "(elements)", "", "", "", "",
                           units, units);
    }
    add_lines(lines);
    for (const Mode mode : all_modes) {
      for (size_t size = 0; size < request.sizes.size(); ++size) {
        if (style_.all || !style_.times) {
          for (const std::string& plan : plans(collective)) {
            row(find(plan, collective, false, size, mode), find(plan, collective, true, size, mode));
          }
        } else {
          row(results_.best(collective, false, size, mode), results_.best(collective, true, size, mode));
        }
      }
    }
  }

  std::vector<std::string> plans(const std::string& collective) const {
    std::vector<std::string> names;
    for (const Subject& subject : results_.request->subjects) {
      if (subject.nccl || subject.collective != collective) continue;
      if (std::find(names.begin(), names.end(), subject.name) == names.end()) names.push_back(subject.name);
    }
    return names;
  }

  const Result* find(const std::string& plan, const std::string& collective, bool in_place, size_t size,
                     Mode mode) const {
    for (const Result& result : results_.all) {
      const Subject& of = results_.subject(result);
      if (of.nccl || of.name != plan || of.collective != collective || of.in_place != in_place) continue;
      if (result.size == size && result.mode == mode && result.finished) return &result;
    }
    return nullptr;
  }

  std::string half_head(const char* time, const char* algorithm, const char* bus, const char* wrong,
                        const char* nccl, const char* ratio, const char* plan) const {
    std::string text;
    if (style_.times) text += fmt::format("{:>11}{:>9}{:>9}", time, algorithm, bus);
    text += fmt::format("{:>8}", wrong);
    if (nccl_) text += fmt::format("{:>10}{:>8}", nccl, ratio);
    return text + fmt::format("  {:<{}}", plan, plan_width_);
  }

  std::string half(const Result* result) const {
    if (!result) return half_head("-", "-", "-", "-", "-", "-", "-");
    const Subject& of = results_.subject(*result);
    const Bandwidth speed = bandwidth(results_, *result);
    const double nccl = results_.nccl_us(of.collective, of.in_place, result->size, result->mode);
    return half_head(time_word(result->us).c_str(), fmt::format("{:.2f}", speed.algorithm).c_str(),
                     fmt::format("{:.2f}", speed.bus).c_str(),
                     result->checked ? std::to_string(result->wrong).c_str() : "N/A",
                     nccl > 0 ? time_word(nccl).c_str() : "-",
                     nccl > 0 && result->us > 0 ? fmt::format("{:.2f}", nccl / result->us).c_str() : "-",
                     plan_words(results_, *result).c_str());
  }

  void row(const Result* out_of_place, const Result* in_place) {
    const Result* const known = out_of_place ? out_of_place : in_place;
    if (!known) return;
    add_lines(fmt::format(" {:>12}{:>14}{:>10}{:>8}{:>6}{:>7}{}{}\n", results_.request->sizes[known->size],
                          elements(results_, *known), dtype_name(results_.request->dtype),
                          redop(results_, *known), root(results_, *known), mode_names[size_t(known->mode)],
                          half(out_of_place), half(in_place)));
  }

  /// Adds lines, without the blanks at their ends.
  void add_lines(const std::string& lines) {
    for (const char letter : lines) {
      if (letter == '\n') text_.erase(text_.find_last_not_of(' ') + 1);
      text_ += letter;
    }
  }

  const BenchResults& results_;
  TableStyle style_;
  bool nccl_ = false;
  size_t plan_width_ = 4;
  std::string text_;
};

}  // namespace

std::string time_word(double us) {
  return us < 100     ? fmt::format("{:.2f}", us)
         : us < 10000 ? fmt::format("{:.1f}", us)
                      : fmt::format("{:.0f}", us);
}

std::string text_line(const BenchResults& results, const Result& result) {
  const Subject& of = results.subject(result);
  std::string text = fmt::format(
      "{}{} at {}, {}: ", of.nccl ? "NCCL, " + of.collective : of.name, of.in_place ? ", in place" : "",
      format_bytes(results.request->sizes[result.size]), mode_names[size_t(result.mode)]);
  if (!result.finished) return text + result.note;
  text += fmt::format("{} us, {:.2f} GB/s", time_word(result.us), bandwidth(results, result).bus);
  const double nccl = results.nccl_us(of.collective, of.in_place, result.size, result.mode);
  if (nccl > 0 && result.us > 0 && !of.nccl)
    text += fmt::format(", {:.2f} times as fast as NCCL", nccl / result.us);
  if (!result.what.empty()) text += ", WRONG: " + result.what;
  return text;
}

std::string text_table(const BenchResults& results, const TableStyle& style) {
  return Table(results, style).write();
}

}  // namespace chorale::tools
