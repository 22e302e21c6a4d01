// This check requires that nothing else touches the views of a transfer until its token is waited for.
//
// Movers differ in when they touch the views. Some have received a view before the stream goes on, others
// only when the wait has ended. [races] checks one mover; this check holds for all.

#include <fmt/format.h>

#include <algorithm>

#include "accesses.hpp"
#include "box_index.hpp"
#include "checks.hpp"
#include "compiler/schedule/report.hpp"
#include "conflicts.hpp"

namespace chorale::schedule {
namespace {

class Tokens {
 public:
  Tokens(const Schedule& schedule, const Concrete& made, Diagnostics& out)
      : s_(schedule), made_(made), order_(made, Queues::by_stream, 1), out_(out) {}

  void all() {
    for (uint32_t rank = 0; rank < made_.ranks; ++rank) find_spans(rank);
    for (std::vector<Access>& list : accesses(made_, 1)) {
      // Only the views of a collective have names, so no other operation can use its other memory.
      if (list.empty() || list[0].box->tensor >= s_.tensors.size()) continue;
      for (Access& one : list) one.event.step = spans_[one.rank][one.event.step].of;
      if (!in_order(list)) compare_all(list);
    }
  }

 private:
  /// Says how long an operation lasts: a group or collective until its wait, any other as long as its step.
  struct Span {
    uint32_t of = 0;  ///< the group, the end of the collective, or the step itself
    uint32_t first = 0, last = 0;
  };

  void find_spans(uint32_t rank) {
    const std::vector<Step>& steps = made_.steps[rank];
    std::vector<Span>& spans = spans_.emplace_back();
    for (uint32_t k = 0; k < steps.size(); ++k) {
      spans.push_back({k, k - steps[k].made_of, k});
      for (uint32_t part = k - steps[k].made_of; part < k; ++part) spans[part].of = k;
      if (steps[k].kind == StepKind::wait) spans[steps[k].token].last = k;
    }
  }
  const Span& span(const Event& event) const { return spans_[event.rank][event.step]; }
  Event first(const Event& event) const { return {event.rank, span(event).first, 0}; }
  Event last(const Event& event) const { return {event.rank, span(event).last, 0}; }
  bool is_waited_for(const Event& event) const { return span(event).last != event.step; }
  bool before(const Event& one, const Event& other) const { return order_.before(last(one), first(other)); }

  /// Returns whether `held` is known to have ended, by the wait for it here or by the wait for its other end.
  /// If a step learns it from a peer, it does so with each mover for which [races] finds the order correct.
  bool is_over(const Access& held, const Access& user) const {
    if (before(held.event, user.event)) return true;
    if (!held.transfer) return false;
    const Pair& pair = made_.pairs[held.transfer->pair];
    const Pair::End& end = held.transfer->is_send ? pair.recv : pair.send;
    return before({end.rank, spans_[end.rank][end.step].of, 0}, user.event);
  }

  /// Checks the order as [races] does, because `before` is transitive for spans, too.
  bool in_order(const std::vector<Access>& list) const {
    std::vector<const Access*> begun;
    for (const Access& one : list) begun.push_back(&one);
    std::stable_sort(begun.begin(), begun.end(), [&](const Access* a, const Access* b) {
      return order_.number(first(a->event)) < order_.number(first(b->event));
    });
    return conflicts_are_in_order(made_.tensors[list[0].box->tensor], begun,
                                  [&](const Event& one, const Event& other) { return before(one, other); });
  }

  void compare_all(const std::vector<Access>& list) {
    BoxIndex all(made_.tensors[list[0].box->tensor]);
    for (size_t one = 0; one < list.size(); ++one) all.add(*list[one].box, one);
    all.build();
    for (size_t one = 0; one < list.size(); ++one)
      for (const size_t other : all.near(*list[one].box, one + 1)) compare(list[one], list[other]);
  }

  void compare(const Access& one, const Access& other) {
    if (one.event == other.event || (!one.writes && !other.writes)) return;
    if (!one.box->overlaps(*other.box)) return;
    if (is_over(one, other) || is_over(other, one)) return;
    // If both are waited for, the later one is in the wrong place.
    const bool turned =
        !is_waited_for(one.event) ||
        (is_waited_for(other.event) && order_.number(first(other.event)) < order_.number(first(one.event)));
    const Access &held = turned ? other : one, &user = turned ? one : other;
    if (is_waited_for(held.event)) find(held, user);
  }

  void find(const Access& held, const Access& user) {
    const Step &of = step(held.event), &at = made_.steps[held.event.rank][span(held.event).last];
    const std::string name = of.name.empty() ? "group" : of.name;
    Diagnostic* finding =
        report(out_, s_, "tokens", user.at,
               fmt::format("this {} {} {} on {}, which a{} {} that is not waited for yet {}", what(user),
                           user.writes ? "overwrites" : "reads", text(made_, *user.box),
                           where(user.event.rank, step(user.event)), name[0] == 'a' ? "n" : "", name,
                           held.writes ? "brings" : "reads"),
               "move it after the wait");
    note(finding, s_, held.at,
         fmt::format("the {}, which {} {}", name, held.writes ? "brings" : "reads", text(made_, *held.box)));
    note(finding, s_, at.at, "its wait");
  }

  const Step& step(const Event& event) const { return made_.steps[event.rank][event.step]; }
  std::string what(const Access& user) const {
    const Step& of = step(user.event);
    if (of.kind == StepKind::group && !of.name.empty()) return of.name;
    if (user.transfer) return user.transfer->is_send ? "send" : "receive";
    const std::string_view kind = step_names[size_t(of.kind)];
    return fmt::format("{}{}", kind, of.kind == StepKind::call ? " of " + of.name : "");
  }

  const Schedule& s_;
  const Concrete& made_;
  Execution order_;
  Diagnostics& out_;
  std::vector<std::vector<Span>> spans_;  // by rank and step
};

}  // namespace

void check_tokens(const Schedule& schedule, const Concrete& made, const Concrete&, Diagnostics& out) {
  Tokens(schedule, made, out).all();
}

}  // namespace chorale::schedule
