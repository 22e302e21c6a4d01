#include "tools/bench/results.hpp"

#include <algorithm>

#include "chorale/collective.hpp"
#include "tools/command.hpp"

namespace chorale::tools {

BenchResults gather(const BenchRequest& request, const BenchReports& reports, Facts facts) {
  BenchResults results{&request, std::move(facts), {}};
  if (const std::string nccl = reports.common().nccl_version; !nccl.empty()) {
    results.facts.emplace_back("nccl", nccl);
  }
  for (size_t subject = 0; subject < request.subjects.size(); ++subject) {
    for (size_t size = 0; size < request.sizes.size(); ++size) {
      const Case& one = request.subjects[subject].cases[size];
      for (const Mode mode : all_modes) {
        Result& result = results.all.emplace_back();
        result.subject = subject;
        result.size = size;
        result.mode = mode;
        result.done = result.finished = true;
        result.checked = one.oracle && one.oracle->knows_result();
        result.note = one.refused;
        if (!one.refused.empty()) {
          result.finished = false;
          continue;
        }
        for (uint32_t rank = 0; rank < request.ranks; ++rank) {
          result.done = result.done && reports.at(rank, subject, size, mode).done;
        }
        // Results that are still being measured are not read.
        if (!result.done) {
          result.finished = false;
          continue;
        }
        for (uint32_t rank = 0; rank < request.ranks; ++rank) {
          const Report& report = reports.at(rank, subject, size, mode);
          result.finished = result.finished && report.finished;
          result.us = std::max(result.us, report.us);
          result.packet = report.packet;
          result.wrong += report.wrong;
          result.failed = result.failed || report.failed;
          if (result.what.empty()) result.what = report.what;
          if (result.note.empty()) result.note = report.note;
        }
      }
    }
  }
  return results;
}

std::vector<std::string> BenchResults::collectives() const {
  std::vector<std::string> names;
  for (const Subject& subject : request->subjects) {
    if (std::find(names.begin(), names.end(), subject.collective) == names.end()) {
      names.push_back(subject.collective);
    }
  }
  return names;
}

namespace {
/// Returns the fastest result that is right and of a subject that `wanted` accepts. Returns null if there is
/// none.
template <class Wanted>
const Result* fastest(const BenchResults& results, size_t size, Mode mode, const Wanted& wanted) {
  const Result* best = nullptr;
  for (const Result& result : results.all) {
    if (result.size != size || result.mode != mode || !wanted(results.subject(result))) continue;
    if (!result.finished || result.wrong || !result.what.empty()) continue;
    if (!best || result.us < best->us) best = &result;
  }
  return best;
}
}  // namespace

const Result* BenchResults::best(const std::string& collective, bool in_place, size_t size, Mode mode,
                                 bool rank_order, uint32_t limit) const {
  return fastest(*this, size, mode, [&](const Subject& of) {
    return of.is_plan() && of.collective == collective && of.in_place == in_place &&
           (of.rank_order || !rank_order) && (limit == 0 || of.blocks <= limit);
  });
}

const Result* BenchResults::nccl_within(const std::string& collective, bool in_place, size_t size, Mode mode,
                                        uint32_t limit) const {
  return fastest(*this, size, mode, [&](const Subject& of) {
    return of.peer == Peer::nccl && of.blocks == limit && of.collective == collective &&
           of.in_place == in_place;
  });
}

const Result* BenchResults::by_default(const std::string& collective, bool in_place, size_t size,
                                       Mode mode) const {
  return fastest(*this, size, mode, [&](const Subject& of) {
    return !of.is_default.empty() && of.is_default[size] && of.collective == collective &&
           of.in_place == in_place;
  });
}

bool BenchResults::knows_defaults() const {
  return std::any_of(request->subjects.begin(), request->subjects.end(),
                     [](const Subject& of) { return !of.is_default.empty(); });
}

const Result* BenchResults::best_peer(const std::string& collective, bool in_place, size_t size,
                                      Mode mode) const {
  return fastest(*this, size, mode, [&](const Subject& of) {
    return !of.is_plan() && of.collective == collective && of.in_place == in_place;
  });
}

double BenchResults::nccl_us(const std::string& collective, bool in_place, size_t size, Mode mode) const {
  for (const Result& result : all) {
    const Subject& of = subject(result);
    if (of.peer != Peer::nccl || of.collective != collective || of.in_place != in_place) continue;
    if (!request->limits.empty() && of.blocks != request->limits.back()) continue;
    if (result.size == size && result.mode == mode && result.finished) return result.us;
  }
  return 0;
}

bool BenchResults::any(const std::string& collective, bool in_place, Mode mode) const {
  return std::any_of(all.begin(), all.end(), [&](const Result& result) {
    const Subject& of = subject(result);
    return result.finished && result.mode == mode && of.collective == collective && of.in_place == in_place;
  });
}

Bandwidth bandwidth(const BenchResults& results, const Result& result) {
  if (result.us <= 0) return {};
  const double algorithm = double(results.request->sizes[result.size]) / result.us / 1e3;
  return {algorithm, algorithm * bus_factor(results.subject(result).collective, results.request->ranks)};
}

uint64_t message_elements(const std::string& collective, uint64_t bytes, uint32_t ranks, DType dtype) {
  const CollectiveInfo& info = collective_info(collective);
  return bytes / dtype_size(dtype) / std::max(info.input_parts(ranks), info.output_parts(ranks));
}

uint64_t elements(const BenchResults& results, const Result& result) {
  return message_elements(results.subject(result).collective, results.request->sizes[result.size],
                          results.request->ranks, results.request->dtype);
}

std::optional<PacketForm> packet(const BenchResults& results, const Result& result) {
  const Subject& of = results.subject(result);
  if (!of.is_plan() || of.plan->protocol != Protocol::LL) return {};
  if (result.finished) return result.packet;
  return of.packet;
}

std::string plan_words(const BenchResults& results, const Result& result) {
  const std::optional<PacketForm> form = packet(results, result);
  return results.subject(result).name + (form ? ", " + std::string(packet_form_names[size_t(*form)]) : "");
}

std::string redop(const BenchResults& results, const Result& result) {
  const Subject& of = results.subject(result);
  const bool has_operator =
      collective_reduces(of.collective) || (results.request->override_op.has_value() && reduces(*of.plan));
  return has_operator ? reduce_op_name(of.op) : "none";
}

int root(const BenchResults& results, const Result& result) {
  const Subject& of = results.subject(result);
  return collective_info(of.collective).has_root() ? int(of.plan->extension.root) : -1;
}

bool says_something(const BenchResults& results, const Result& result) {
  const bool wanted = result.mode == Mode::eager ? results.request->eager : results.request->graph;
  return wanted && (result.finished || !result.note.empty());
}

std::vector<std::string> notes(const BenchResults& results) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  for (const Result& result : results.all) {
    if (result.note.empty() || result.mode != Mode::eager) continue;
    const Subject& of = results.subject(result);
    const std::string why = (of.is_plan() ? of.name : of.name + ", " + of.collective) +
                            (of.in_place ? ", in place: " : ": ") + result.note;
    auto found =
        std::find_if(reasons.begin(), reasons.end(), [&](const auto& one) { return one.first == why; });
    if (found == reasons.end()) found = reasons.insert(reasons.end(), {why, {}});
    found->second.push_back(format_bytes(results.request->sizes[result.size]));
  }
  std::vector<std::string> sentences;
  for (const auto& [why, sizes] : reasons) sentences.push_back("not timed at " + join(sizes) + ": " + why);
  return sentences;
}

}  // namespace chorale::tools
