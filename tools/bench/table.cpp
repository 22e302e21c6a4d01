// Writes the results as a table of text.

#include <fmt/format.h>

#include <algorithm>

#include "tools/bench/results.hpp"

namespace chorale::tools {
namespace {

class Table {
 public:
  Table(const BenchResults& results, const TableStyle& style) : results_(results), style_(style) {
    defaults_ = style.times && results.knows_defaults();
    for (const Subject& subject : results.request->subjects)
      peers_ = peers_ || (!subject.is_plan() && style.times);
    for (const Result& result : results.all) {
      if (results.subject(result).is_plan())
        plan_width_ = std::max(plan_width_, plan_words(results, result).size());
    }
  }

  std::string write() {
    for (const auto& [name, value] : results_.facts) {
      if (style_.times) text_ += fmt::format("# {}: {}\n", name, value);
    }
    for (const std::string& collective : results_.collectives()) section(collective);
    if (results_.request->limits.size() > 1) {
      for (const std::string& collective : results_.collectives()) by_limit(collective);
    }
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
    const size_t half = half_head("", "", "", "", "", "", "", "", "").size();
    std::string lines = left + fmt::format("{:>{}}{:>{}}\n", "out-of-place", half, "in-place", half);
    const std::string head =
        half_head("time", "algbw", "busbw", "#wrong", "peer", "ratio", "fastest peer", "default", "plan");
    lines += fmt::format("#{:>12}{:>14}{:>10}{:>8}{:>6}{:>7}{}{}\n", "size", "count", "type", "redop", "root",
                         "mode", head, head);
    if (style_.times) {
      const std::string units = half_head("(us)", "(GB/s)", "(GB/s)", "", "(us)", "", "", "(us)", "");
      lines += fmt::format("#{:>12}{:>14}{:>10}{:>8}{:>6}{:>7}{}{}\n", "(B)", "(elements)", "", "", "", "",
                           units, units);
    }
    add_lines(lines);
    for (const Mode mode : all_modes) {
      for (size_t size = 0; size < request.sizes.size(); ++size) {
        if (style_.all || !style_.times) {
          for (const Named& plan : plans(collective)) {
            row(find(plan, collective, false, size, mode), find(plan, collective, true, size, mode));
          }
        } else {
          row(results_.best(collective, false, size, mode), results_.best(collective, true, size, mode));
        }
      }
    }
  }

  /// Adds a table with the best plan within each limit of thread blocks, and NCCL with the same limit.
  void by_limit(const std::string& collective) {
    const BenchRequest& request = *results_.request;
    for (const bool in_place : {false, true}) {
      for (const Mode mode : all_modes) {
        if (!results_.any(collective, in_place, mode)) continue;
        text_ += fmt::format("# {}, by the most thread blocks, {}, {}\n", collective,
                             in_place ? "in place" : "out of place", mode_names[size_t(mode)]);
        add_lines(
            limit_line("#", "size", "blocks", "plans", "time", "busbw", "NCCL", "busbw", "ratio", "plan"));
        for (size_t size = 0; size < request.sizes.size(); ++size) {
          for (const uint32_t limit : request.limits) limit_row(collective, in_place, size, mode, limit);
        }
      }
    }
  }

  void limit_row(const std::string& collective, bool in_place, size_t size, Mode mode, uint32_t limit) {
    const Result *const best = results_.best(collective, in_place, size, mode, false, limit),
                        *const nccl = results_.nccl_within(collective, in_place, size, mode, limit);
    const auto time = [](const Result* of) { return of ? time_word(of->us) : "-"; };
    const auto bus = [&](const Result* of) {
      return of ? fmt::format("{:.2f}", bandwidth(results_, *of).bus) : "-";
    };
    const auto plans = std::count_if(results_.all.begin(), results_.all.end(), [&](const Result& result) {
      const Subject& of = results_.subject(result);
      return result.finished && result.size == size && result.mode == mode && of.is_plan() &&
             of.collective == collective && of.in_place == in_place && of.blocks <= limit;
    });
    add_lines(limit_line(" ", std::to_string(results_.request->sizes[size]), std::to_string(limit),
                         std::to_string(plans), time(best), bus(best), time(nccl), bus(nccl),
                         best && nccl ? fmt::format("{:.2f}", nccl->us / best->us) : "-",
                         best ? plan_words(results_, *best) : "-"));
  }

  std::string limit_line(const std::string& begin, const std::string& size, const std::string& limit,
                         const std::string& plans, const std::string& us, const std::string& bus,
                         const std::string& nccl_us, const std::string& nccl_bus, const std::string& ratio,
                         const std::string& plan) const {
    std::string line = fmt::format("{}{:>12}{:>8}{:>7}", begin, size, limit, plans);
    if (style_.times) line += fmt::format("{:>11}{:>9}", us, bus);
    if (peers_) line += fmt::format("{:>11}{:>9}{:>8}", nccl_us, nccl_bus, ratio);
    if (style_.times) line += "  " + plan;
    return line + "\n";
  }

  /// Names a plan, with the form of packets if it was timed with several.
  using Named = std::pair<std::string, std::optional<PacketForm>>;
  static Named named(const Subject& of) { return {of.name, of.packet}; }

  std::vector<Named> plans(const std::string& collective) const {
    std::vector<Named> names;
    for (const Subject& subject : results_.request->subjects) {
      if (!subject.is_plan() || subject.collective != collective) continue;
      if (std::find(names.begin(), names.end(), named(subject)) == names.end())
        names.push_back(named(subject));
    }
    return names;
  }

  const Result* find(const Named& plan, const std::string& collective, bool in_place, size_t size,
                     Mode mode) const {
    for (const Result& result : results_.all) {
      const Subject& of = results_.subject(result);
      if (!of.is_plan() || named(of) != plan || of.collective != collective || of.in_place != in_place)
        continue;
      if (result.size == size && result.mode == mode && result.finished) return &result;
    }
    return nullptr;
  }

  std::string half_head(const char* time, const char* algorithm, const char* bus, const char* wrong,
                        const char* peer, const char* ratio, const char* peer_name, const char* by_default,
                        const char* plan) const {
    std::string text;
    if (style_.times) text += fmt::format("{:>11}{:>9}{:>9}", time, algorithm, bus);
    text += fmt::format("{:>8}", wrong);
    if (peers_) text += fmt::format("{:>10}{:>8}  {:<14}", peer, ratio, peer_name);
    if (defaults_) text += fmt::format("{:>10}", by_default);
    return text + fmt::format("  {:<{}}", plan, plan_width_);
  }

  std::string half(const Result* result) const {
    if (!result) return half_head("-", "-", "-", "-", "-", "-", "-", "-", "-");
    const Subject& of = results_.subject(*result);
    const Bandwidth speed = bandwidth(results_, *result);
    const Result *const peer = results_.best_peer(of.collective, of.in_place, result->size, result->mode),
                        *const by_default =
                            results_.by_default(of.collective, of.in_place, result->size, result->mode);
    return half_head(time_word(result->us).c_str(), fmt::format("{:.2f}", speed.algorithm).c_str(),
                     fmt::format("{:.2f}", speed.bus).c_str(),
                     result->checked ? std::to_string(result->wrong).c_str() : "N/A",
                     peer ? time_word(peer->us).c_str() : "-",
                     peer && result->us > 0 ? fmt::format("{:.2f}", peer->us / result->us).c_str() : "-",
                     peer ? results_.subject(*peer).name.c_str() : "-",
                     by_default ? time_word(by_default->us).c_str() : "-",
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
  bool peers_ = false, defaults_ = false;
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
  std::string text =
      fmt::format("{}{} at {}, {}: ", of.is_plan() ? of.name : of.name + ", " + of.collective,
                  of.in_place ? ", in place" : "", format_bytes(results.request->sizes[result.size]),
                  mode_names[size_t(result.mode)]);
  if (!result.finished) return text + result.note;
  text += fmt::format("{} us, busbw {:.2f} GB/s", time_word(result.us), bandwidth(results, result).bus);
  const Result* const peer = results.best_peer(of.collective, of.in_place, result.size, result.mode);
  if (of.is_plan() && peer && result.us > 0)
    text += fmt::format(", {:.2f} times as fast as {}", peer->us / result.us, results.subject(*peer).name);
  if (!result.what.empty()) text += ", WRONG: " + result.what;
  return text;
}

std::string text_table(const BenchResults& results, const TableStyle& style) {
  return Table(results, style).write();
}

}  // namespace chorale::tools
