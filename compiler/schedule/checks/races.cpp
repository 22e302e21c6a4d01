// This check requires conflicting accesses to be ordered: within a run, between two runs, and with the
// application.

#include <fmt/format.h>

#include <algorithm>

#include "accesses.hpp"
#include "box_index.hpp"
#include "checks.hpp"
#include "compiler/schedule/report.hpp"
#include "conflicts.hpp"

namespace chorale::schedule {
namespace {

/// Adds the application, which uses its tensors on the main stream before and after a run.
Concrete with_application(const Concrete& made) {
  Concrete all = made;
  Step use;
  use.kind = StepKind::call;
  use.name = "application";
  for (uint32_t k = 0; k < made.tensors.size(); ++k) {
    const ConcreteTensor& tensor = made.tensors[k];
    if (tensor.role == Role::temp) continue;
    Box box{.tensor = k,
            .lo = std::vector<uint64_t>(tensor.shape.size()),
            .extent = tensor.shape,
            .shape = {},
            .strides = {}};
    box.bytes = tensor.bytes;
    use.writes.push_back(std::move(box));
  }
  for (std::vector<Step>& steps : all.steps) {
    for (Step& step : steps)
      if (step.kind == StepKind::wait) ++step.token;
    steps.insert(steps.begin(), use);
    steps.push_back(use);
  }
  for (Pair& pair : all.pairs) ++pair.send.step, ++pair.recv.step;
  return all;
}

class Races {
 public:
  Races(const Schedule& schedule, const Concrete& made, Diagnostics& out)
      : s_(schedule), made_(made), order_(made, Queues::by_stream, 2), out_(out) {}

  void all() {
    for (const std::vector<Access>& list : accesses(made_, 2)) {
      if (list.empty()) continue;
      within_events(list);
      if (!in_order(list)) compare_all(list);
    }
  }

 private:
  /// Compares the accesses of each event, which are neighbours in the list.
  void within_events(const std::vector<Access>& list) {
    for (size_t one = 0; one < list.size(); ++one)
      for (size_t other = one + 1; other < list.size() && list[one].event == list[other].event; ++other)
        if (list[one].writes || list[other].writes) within_one(list[one], list[other]);
  }

  /// Checks the order faster than compare_all(): its time is not quadratic in the number of accesses that use
  /// one slot in turn.
  bool in_order(const std::vector<Access>& list) const {
    if (!order_.blocked().empty()) return false;
    std::vector<const Access*> ended;
    for (const Access& one : list) ended.push_back(&one);
    std::stable_sort(ended.begin(), ended.end(), [&](const Access* a, const Access* b) {
      return order_.number(a->event) < order_.number(b->event);
    });
    return conflicts_are_in_order(
        made_.tensors[list[0].box->tensor], ended,
        [&](const Event& first, const Event& second) { return order_.before(first, second); });
  }

  /// Compares every two accesses, so that findings can name them.
  void compare_all(const std::vector<Access>& list) {
    BoxIndex all(made_.tensors[list[0].box->tensor]), written = all;
    for (size_t one = 0; one < list.size(); ++one) {
      all.add(*list[one].box, one);
      if (list[one].writes) written.add(*list[one].box, one);
    }
    all.build();
    written.build();
    for (size_t one = 0; one < list.size(); ++one)
      for (const size_t other : (list[one].writes ? all : written).near(*list[one].box, one + 1))
        compare(list, list[one], list[other]);
  }

  bool is_application(const Access& access) const {
    return access.event.step == 0 || access.event.step + 1 == made_.steps[access.event.rank].size();
  }
  std::string what(const Access& access) const {
    const Step& step = made_.steps[access.event.rank][access.event.step];
    const bool moves =
        step.kind == StepKind::put || step.kind == StepKind::get || step.kind == StepKind::exchange;
    const std::string_view kind = moves ? "transfer" : step_names[size_t(step.kind)];
    return fmt::format("{}{} on {}", kind, step.kind == StepKind::call ? " of " + step.name : "",
                       where(access.event.rank, step));
  }

  void compare(const std::vector<Access>& list, const Access& one, const Access& other) {
    if (!one.writes && !other.writes) return;
    if (one.event == other.event) return;
    if (!one.box->overlaps(*other.box)) return;
    if (before(one, other) || before(other, one)) return;
    if (is_application(one) && is_application(other)) return;
    if (is_application(one) || is_application(other))
      return with_application(is_application(one) ? other : one, is_application(one) ? one : other);
    const Access& writer = one.writes ? one : other;
    const Access& second = one.writes ? other : one;
    const bool between_runs = one.event.run != other.event.run;
    Diagnostic* finding =
        report(out_, s_, "races", writer.at,
               fmt::format("this overwrites {} of rank {} on {}, and nothing orders it with the {}{}",
                           text(made_, *writer.box), writer.rank, place(writer), what(second),
                           between_runs ? " of the previous or the next run" : ""),
               help(list, writer, second));
    note(finding, s_, second.at,
         fmt::format("which {} {}", second.writes ? "overwrites" : "reads", text(made_, *second.box)));
  }

  /// Returns what to do about a write that nothing orders with another access.
  std::string help(const std::vector<Access>& list, const Access& writer, const Access& second) const {
    const std::string plain = "order the streams with after, or wait for the token";
    const Step& put = made_.steps[writer.event.rank][writer.event.step];
    if (put.kind != StepKind::put || second.event.rank != writer.rank) return plain;
    // expand_movers() makes each put right after the take of the receiver's credit. No stream of the sender
    // can be ordered with the receiver's.
    const Step& take = made_.steps[writer.event.rank][writer.event.step - 1];
    const std::string receive = line(made_.flags[take.flag].at), user = line(second.at);
    if (receive.empty() || user.empty()) return plain;
    const bool has_data = std::any_of(list.begin(), list.end(), [&](const Access& one) {
      const bool writes =
          one.writes && (!is_application(one) || made_.tensors[one.box->tensor].role == Role::in);
      return writes && one.event != writer.event && one.box->overlaps(*second.box) && before(one, second);
    });
    if (second.writes || has_data)
      return fmt::format("the receive of {} lets the peer write: let its stream come after the {} of {}",
                         receive, step_names[size_t(made_.steps[second.event.rank][second.event.step].kind)],
                         user);
    return fmt::format("wait for the token of the receive of {} before {}", receive, user);
  }

  std::string line(uint32_t at) const {
    const SourceLine line = s_.line_of(at);
    return line.line ? fmt::format("{}:{}", line.file, line.line) : "";
  }

  /// Returns whether `first` comes before `second`. Data that has arrived has been read at its sender,
  /// although the sender may still be in the same exchange.
  bool before(const Access& first, const Access& second) const {
    if (order_.before(first.event, second.event)) return true;
    if (!first.transfer || !first.transfer->is_send) return false;
    const Pair::End& arrives = made_.pairs[first.transfer->pair].recv;
    return order_.before({arrives.rank, arrives.step, first.event.run}, second.event);
  }

  std::string place(const Access& access) const {
    return where(access.event.rank, made_.steps[access.event.rank][access.event.step]);
  }

  void within_one(const Access& one, const Access& other) {
    const Step& step = made_.steps[one.event.rank][one.event.step];
    if (!one.box->overlaps(*other.box)) return;
    if (step.transfers.empty()) return within_call(step, one, other);
    Diagnostic* finding =
        report(out_, s_, "races", one.at,
               fmt::format("two transfers of one group use {} on {}", text(made_, *one.box), place(one)));
    note(finding, s_, other.at, "the other one");
  }

  /// Reports conflicts within one operation, whose elements are read and written in an unknown order.
  void within_call(const Step& step, const Access& one, const Access& other) {
    if (is_application(one)) return;
    const bool both = one.writes && other.writes;
    const Box &written = one.writes ? *one.box : *other.box, &second = one.writes ? *other.box : *one.box;
    if (!both && in_place(step, one.event.rank, written, second)) return;
    report(out_, s_, "races", step.at,
           fmt::format("the {} writes {} and {} {}, which overlap", what(one), text(made_, written),
                       both ? "writes" : "reads", text(made_, second)),
           both ? "" : "give the result memory of its own, and copy it then");
  }

  /// Returns whether each element of the result overwrites the element that it is computed from, or is where
  /// plans expect it.
  bool in_place(const Step& step, uint32_t rank, const Box& written, const Box& read) const {
    const bool same = written.lo == read.lo && written.extent == read.extent;
    if (step.kind == StepKind::launch) {
      // [shapes] checks that the elements of both are consecutive in memory.
      const auto is_part = [&](const Box& part, const Box& whole) {
        return part.bytes * made_.ranks == whole.bytes &&
               part.offset_bytes == whole.offset_bytes + rank * part.bytes;
      };
      return same || is_part(read, written) || is_part(written, read);
    }
    const bool own = function_of(s_, step);
    const bool mixes = step.name == "matmul" || step.name == "linear" || step.name == "sum";
    return same && (step.kind == StepKind::copy || own || !mixes);
  }

  void with_application(const Access& inside, const Access& application) {
    const std::string stream = made_.streams[made_.steps[inside.event.rank][inside.event.step].stream];
    const bool first = application.event.run == inside.event.run && application.event.step == 0;
    report(
        out_, s_, "races", inside.at,
        fmt::format("this {} {} of rank {} on {}, and nothing {} stream main{}",
                    inside.writes ? "overwrites" : "reads", text(made_, *inside.box), inside.rank,
                    place(inside), first ? "makes it wait for" : "makes it known to",
                    first ? ", on which the application prepares it" : ", on which the application goes on"),
        (first ? "begin with a fork of stream " : "end with a join of stream ") + stream +
            (first ? " from main" : " into main"));
  }

  const Schedule& s_;
  const Concrete& made_;
  Execution order_;
  Diagnostics& out_;
};

}  // namespace

void check_races(const Schedule& schedule, const Concrete&, const Concrete& expanded, Diagnostics& out) {
  const Concrete all = with_application(expanded);
  Races(schedule, all, out).all();
}

}  // namespace chorale::schedule
