#include "tools/view/schedule_picture.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "chorale/schedule/dump.hpp"
#include "tools/command.hpp"
#include "tools/view/plan_picture.hpp"

namespace chorale::tools {
namespace {

using schedule::Step;
using schedule::StepKind;

PictureKind kind_of(StepKind kind) {
  switch (kind) {
    case StepKind::after:
    case StepKind::barrier:
    case StepKind::take:
    case StepKind::wait:
      return PictureKind::waits;
    case StepKind::post:
      return PictureKind::signals;
    case StepKind::call:
      return PictureKind::computes;
    case StepKind::mark:
      return PictureKind::other;
    default:
      return PictureKind::moves;
  }
}

/// Returns the lines that the dump has for the steps of a rank, without numbers and streams.
std::vector<std::string> texts_of(const std::string& name, const schedule::Concrete& made, uint32_t rank) {
  const std::string dump = schedule::dump(name, made, rank);
  std::vector<std::string> texts;
  size_t at = dump.find('\n') + 1;
  for (const Step& step : made.steps[rank]) {
    const size_t end = std::min(dump.find('\n', at), dump.size());
    const std::string line = dump.substr(at, end - at);
    const std::string& stream = made.streams[step.stream];
    // The stream's name follows the number of the step, and is padded with spaces.
    size_t begin = line.find(stream, line.find_first_of("0123456789"));
    begin = begin == line.npos ? 0 : line.find_first_not_of(' ', begin + stream.size());
    texts.push_back(begin == line.npos ? "" : line.substr(begin));
    at = end + 1;
  }
  return texts;
}

/// Says where the steps of a schedule are in the picture.
class Numbers {
 public:
  explicit Numbers(const schedule::Concrete& made) {
    for (uint32_t rank = 0; rank < made.ranks; ++rank) {
      of_.emplace_back(made.steps[rank].size());
      for (uint32_t stream = 0; stream < made.streams.size(); ++stream) {
        for (uint32_t step = 0; step < made.steps[rank].size(); ++step)
          if (made.steps[rank][step].stream == stream) of_[rank][step] = next_++;
      }
    }
  }
  uint32_t operator()(uint32_t rank, uint32_t step) const { return of_[rank][step]; }

 private:
  std::vector<std::vector<uint32_t>> of_;
  uint32_t next_ = 0;
};

/// Lists, by rank and step, the steps that must come before each step, besides the one before it on its
/// stream.
using Awaits = std::vector<std::vector<std::vector<uint32_t>>>;

Awaits awaits_of(const schedule::Concrete& made, const Numbers& number) {
  Awaits all;
  std::map<std::tuple<uint32_t, uint32_t>, std::vector<uint32_t>> posts, takes;  // by flag and poster
  std::map<uint32_t, std::vector<uint32_t>> barriers;                            // by turn of the barrier
  for (uint32_t rank = 0; rank < made.ranks; ++rank) {
    uint32_t turn = 0;
    for (uint32_t step = 0; step < made.steps[rank].size(); ++step) {
      const Step& of = made.steps[rank][step];
      if (of.kind == StepKind::post) posts[{of.flag, rank}].push_back(number(rank, step));
      // All ranks have arrived at a barrier when each has done what comes before it on its stream.
      if (of.kind != StepKind::barrier) continue;
      for (uint32_t before = step; before-- > 0;) {
        if (made.steps[rank][before].stream != of.stream) continue;
        barriers[turn].push_back(number(rank, before));
        break;
      }
      ++turn;
    }
  }
  std::map<std::tuple<uint32_t, uint32_t>, size_t> taken;
  for (uint32_t rank = 0; rank < made.ranks; ++rank) {
    all.emplace_back(made.steps[rank].size());
    std::vector<int64_t> last(made.streams.size(), -1);
    std::map<uint32_t, uint32_t> marks;
    uint32_t turn = 0;
    for (uint32_t step = 0; step < made.steps[rank].size(); ++step) {
      const Step& of = made.steps[rank][step];
      std::vector<uint32_t>& awaits = all.back()[step];
      if (of.kind == StepKind::take) {
        const std::tuple key{of.flag, of.peer};
        const size_t turn_of_flag = taken[key]++;
        if (turn_of_flag < posts[key].size()) awaits.push_back(posts[key][turn_of_flag]);
      } else if (of.kind == StepKind::after) {
        if (of.token && marks.contains(of.token)) {
          awaits.push_back(marks[of.token]);
        } else {
          for (const uint32_t stream : of.streams)
            if (last[stream] >= 0) awaits.push_back(uint32_t(last[stream]));
        }
      } else if (of.kind == StepKind::barrier) {
        awaits = barriers[turn++];
      } else if (of.kind == StepKind::mark && of.token) {
        marks[of.token] = number(rank, step);
      }
      last[of.stream] = number(rank, step);
    }
  }
  return all;
}

std::string line_words(uint64_t bytes) { return format_bytes(bytes) + " bytes"; }

uint64_t bytes_of(const Step& step) {
  uint64_t bytes = 0;
  for (const schedule::Box& box : step.writes) bytes += box.bytes;
  for (const schedule::ConcreteTransfer& transfer : step.transfers)
    bytes += transfer.is_send ? transfer.box.bytes : 0;
  return bytes;
}

/// Adds a note that names the calls and launches whose times are not known, if there are any.
void note_unknown_times(const schedule::Concrete& made, const SchedulePrediction& prediction,
                        Picture& picture) {
  std::set<std::string> names;
  for (const auto& steps : made.steps) {
    for (const Step& step : steps) {
      const bool has_name = step.kind == StepKind::launch || (step.kind == StepKind::call && !step.built_in);
      if (has_name && prediction.time_of(step) < 0) names.insert(step.name);
    }
  }
  if (names.empty()) return;
  const std::vector<std::string> all(names.begin(), names.end());
  picture.notes.push_back("The predicted time of " + join(all) +
                          " is only that of its bytes through the memory. Give the real one: --time " +
                          all.front() + "=20us");
}

}  // namespace

Picture picture_of_schedule(const Plan& plan, const schedule::Concrete& made, const std::string& file,
                            const std::vector<Explained>& findings, const SchedulePrediction& prediction) {
  const schedule::Schedule& schedule = *plan.extension.schedule;
  Picture picture;
  picture.kind = "schedule";
  picture.name = plan.name;
  picture.file = file;
  picture.headline = "host schedule of " + count(made.ranks, "rank");
  picture.ranks = made.ranks;
  const Numbers number(made);
  const Awaits awaits = awaits_of(made, number);
  std::vector<const Step*> steps;  // by number
  for (uint32_t rank = 0; rank < made.ranks; ++rank) {
    const std::vector<std::string> texts = texts_of(plan.name, made, rank);
    for (uint32_t stream = 0; stream < made.streams.size(); ++stream) {
      PictureRow row{rank, made.streams[stream], {}};
      for (uint32_t at = 0; at < made.steps[rank].size(); ++at) {
        const Step& step = made.steps[rank][at];
        if (step.stream != stream) continue;
        PictureOp op;
        op.name = step.kind == StepKind::call ? step.name : schedule::step_names[size_t(step.kind)];
        op.kind = kind_of(step.kind);
        op.text = texts[at];
        if (const uint64_t bytes = bytes_of(step)) op.text += ", " + line_words(bytes);
        if (!step.turn.empty()) {
          op.text += " (";
          for (const auto& [variable, value] : step.turn)
            op.text += (op.text.back() == '(' ? "" : ", ") + variable + " = " + std::to_string(value);
          op.text += ")";
        }
        if (step.kind == StepKind::post || step.kind == StepKind::take)
          op.channel = "flag " + made.flags[step.flag].name;
        op.line = schedule.line_of(step.at);
        op.awaits = awaits[rank][at];
        row.ops.push_back(std::move(op));
        steps.push_back(&step);
      }
      if (!row.ops.empty()) picture.rows.push_back(std::move(row));
    }
  }
  picture.findings = findings_json(plan, findings, {});
  note_unknown_times(made, prediction, picture);
  picture.times.push_back(predict_schedule(picture, made, steps, prediction));
  picture.tracks.emplace_back("predicted");
  return picture;
}

}  // namespace chorale::tools
