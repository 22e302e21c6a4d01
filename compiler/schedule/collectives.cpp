#include "collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "chorale/schedule/collective.hpp"
#include "report.hpp"

namespace chorale::schedule {
namespace {

/// Returns the outermost axis with more than one element.
size_t outermost(const std::vector<uint64_t>& extents) {
  const auto wide = std::find_if(extents.begin(), extents.end(), [](uint64_t extent) { return extent != 1; });
  return size_t(wide - extents.begin());
}

class Expander {
 public:
  Expander(Concrete& made, const Schedule& schedule, Mover mover, Diagnostics& findings)
      : made_(made), s_(schedule), mover_(mover), out_(findings) {}

  void all(const std::vector<Collective>& collectives) {
    auto next = collectives.begin();
    for (rank_ = 0; rank_ < made_.ranks; ++rank_) {
      const std::vector<Step> before = std::move(made_.steps[rank_]);
      made_.steps[rank_].clear();
      std::vector<uint32_t> positions;  // the current positions of the groups
      for (uint32_t at = 0; at < before.size(); ++at) {
        positions.push_back(uint32_t(steps().size()));
        const Step& step = before[at];
        if (next != collectives.end() && next->rank == rank_ && next->step == at) {
          of_ = &step;
          one(*next);
          end(next->kind, positions[at]);
          ++next;
          continue;
        }
        steps().push_back(step);
        if (step.kind == StepKind::wait) steps().back().token = positions[step.token];
      }
    }
  }

 private:
  std::vector<Step>& steps() { return made_.steps[rank_]; }

  Step& add(StepKind kind) {
    Step step;
    step.kind = kind;
    step.stream = of_->stream;
    step.at = of_->at;
    step.turn = of_->turn;
    return steps().emplace_back(std::move(step));
  }
  /// Adds the step that the author waits for.
  void end(const std::string& kind, uint32_t& position) {
    const uint32_t first = position;
    position = uint32_t(steps().size());
    Step& step = add(StepKind::group);
    step.name = kind;
    step.made_of = position - first;
  }
  void copy(const Box& to, const Box& from) {
    if (to.tensor == from.tensor && to.lo == from.lo && to.extent == from.extent) return;  // in place
    Step& step = add(StepKind::copy);
    step.writes = {to};
    step.reads = {from};
  }
  ConcreteTransfer transfer(bool is_send, const Box& box, uint32_t peer) const {
    return {is_send, box, peer, collective_tag, mover_, 0, of_->at};
  }
  void group(std::vector<ConcreteTransfer> transfers) {
    if (transfers.empty()) return;
    add(StepKind::group).transfers = std::move(transfers);
    const uint32_t position = uint32_t(steps().size() - 1);
    add(StepKind::wait).token = position;
  }
  /// Transfers with every other rank, beginning at the next one, so that no two ranks put to the same rank at
  /// once.
  /// \param sent, received  by rank
  template <class Sent, class Received>
  void with_all(const Sent& sent, const Received& received) {
    std::vector<ConcreteTransfer> transfers;
    for (uint32_t distance = 1; distance < made_.ranks; ++distance) {
      const uint32_t from = (rank_ + made_.ranks - distance) % made_.ranks,
                     to = (rank_ + distance) % made_.ranks;
      transfers.push_back(transfer(false, received(from), from));
      transfers.push_back(transfer(true, sent(to), to));
    }
    group(std::move(transfers));
  }

  bool divides(const Box& box) const {
    const size_t axis = outermost(box.extent);
    return made_.ranks == 1 || (axis < box.extent.size() && box.extent[axis] % made_.ranks == 0);
  }
  /// Returns the share of a rank, along the outermost axis.
  Box part(const Box& whole, uint32_t rank) const {
    if (made_.ranks == 1) return whole;
    Box box = whole;
    const size_t axis = outermost(box.extent), seen = outermost(box.shape);
    box.extent[axis] /= made_.ranks;
    box.lo[axis] += rank * box.extent[axis];
    box.shape[seen] = box.extent[axis];
    box.bytes /= made_.ranks;
    box.offset_bytes +=
        rank * box.extent[axis] * box.strides[seen] * dtype_size(made_.tensors[box.tensor].dtype);
    return box;
  }

  /// Returns the tensor that collects the addends of a result, one slot per rank. Each stream has its own, so
  /// that no stream waits for another.
  uint32_t addends(const Box& result) {
    const auto [known, is_new] = addends_.emplace(std::tuple(of_->stream, result.tensor, result.shape),
                                                  uint32_t(made_.tensors.size()));
    if (is_new) {
      const ConcreteTensor& of = made_.tensors[result.tensor];
      ConcreteTensor made{.name = fmt::format("addends {} of {}", addends_.size(), of.name),
                          .dtype = of.dtype,
                          .shape = {made_.ranks},
                          .bytes = result.bytes * made_.ranks,
                          .role = Role::temp,
                          .space = Space::window,
                          .zero = false};
      made.shape.insert(made.shape.end(), result.shape.begin(), result.shape.end());
      made_.tensors.push_back(std::move(made));
    }
    return known->second;
  }
  Box box_of(uint32_t tensor, uint64_t first, uint64_t count) const {
    const ConcreteTensor& of = made_.tensors[tensor];
    Box box{.tensor = tensor,
            .lo = std::vector<uint64_t>(of.shape.size()),
            .extent = of.shape,
            .shape = {},
            .strides = {}};
    box.lo[0] = first;
    box.extent[0] = count;
    box.shape = box.extent;
    uint64_t stride = 1;
    for (size_t axis = of.shape.size(); axis-- > 0; stride *= of.shape[axis])
      box.strides.insert(box.strides.begin(), stride);
    box.bytes = of.bytes / of.shape[0] * count;
    box.offset_bytes = of.bytes / of.shape[0] * first;
    return box;
  }
  Box slot(uint32_t tensor, uint32_t rank) const { return box_of(tensor, rank, 1); }

  void sum(const Box& result, uint32_t addends) {
    Step& step = add(StepKind::call);
    step.name = "sum";
    step.built_in = true;
    step.writes = {result};
    step.reads = {box_of(addends, 0, made_.ranks)};
    step.attributes = {{"axis", 0}};
  }

  void say(std::string text, std::string help) {
    report(out_, s_, "shapes", of_->at, fmt::format("{}, on {}", text, where(rank_, *of_)), std::move(help));
  }
  bool fits(const Collective& one) {
    const Box &to = one.dst, &from = one.src;
    const ConcreteTensor &result = made_.tensors[to.tensor], &operand = made_.tensors[from.tensor];
    const CollectiveInfo& kind = collective_row(one.kind);
    const uint64_t inputs = kind.input_parts(made_.ranks), outputs = kind.output_parts(made_.ranks);
    if (result.dtype != operand.dtype) {
      say(fmt::format("{} takes {}, which is {}, to {}, which is {}", one.kind, text(made_, from),
                      dtype_name(operand.dtype), text(made_, to), dtype_name(result.dtype)),
          "cast one of them");
    } else if (to.bytes * inputs != from.bytes * outputs) {
      say(fmt::format("{} takes {} bytes of {} to {} bytes of {}", one.kind, from.bytes, text(made_, from),
                      to.bytes, text(made_, to)),
          inputs == outputs ? "give both the same extents"
                            : fmt::format("of the {} the whole is {} times the part",
                                          outputs > 1 ? "result" : "operand", made_.ranks));
    } else if (one.reduce != ReduceOp::sum && kind.reduces()) {
      say(fmt::format("{} with {}: addends can only be summed", one.kind, reduce_op_name(one.reduce)),
          "launch a plan, which has other operators");
    } else if ((outputs > 1 && !divides(to)) || (inputs > 1 && !divides(from))) {
      const Box& whole = inputs > 1 && !divides(from) ? from : to;
      say(fmt::format("{} shares {} among {} ranks along its outermost axis, whose extent they do not divide",
                      one.kind, text(made_, whole), made_.ranks),
          "put an axis in front whose extent is the number of ranks");
    } else {
      return true;
    }
    return false;
  }

  void one(const Collective& one) {
    if (!fits(one)) return;
    const Box &dst = one.dst, &src = one.src;
    const CollectiveInfo& kind = collective_row(one.kind);
    if (kind.only_root_sends()) return broadcast(dst, src, one.root);
    if (kind.only_root_receives()) return reduce(dst, src, one.root);
    if (kind.input_is_part()) return gather(dst, src);
    if (kind.output_is_part()) return scatter(dst, src);
    if (!kind.reduces()) return exchange(dst, src);
    if (!divides(dst) || !divides(src)) return reduce_at_all(dst, src);
    const Box mine = part(dst, rank_);
    scatter(mine, src);
    gather(dst, mine);
  }

  void broadcast(const Box& dst, const Box& src, uint32_t root) {
    if (rank_ != root) return group({transfer(false, dst, root)});
    std::vector<ConcreteTransfer> sends;
    for (uint32_t distance = 1; distance < made_.ranks; ++distance)
      sends.push_back(transfer(true, src, (rank_ + distance) % made_.ranks));
    group(std::move(sends));
    copy(dst, src);
  }
  void reduce(const Box& dst, const Box& src, uint32_t root) {
    if (rank_ != root) return group({transfer(true, src, root)});
    const uint32_t slots = addends(dst);
    std::vector<ConcreteTransfer> receives;
    for (uint32_t distance = 1; distance < made_.ranks; ++distance) {
      const uint32_t from = (rank_ + distance) % made_.ranks;
      receives.push_back(transfer(false, slot(slots, from), from));
    }
    copy(slot(slots, rank_), src);
    group(std::move(receives));
    sum(dst, slots);
  }
  void gather(const Box& dst, const Box& mine) {
    copy(part(dst, rank_), mine);
    with_all([&](uint32_t) { return mine; }, [&](uint32_t from) { return part(dst, from); });
  }
  void scatter(const Box& mine, const Box& src) {
    const uint32_t slots = addends(mine);
    copy(slot(slots, rank_), part(src, rank_));
    with_all([&](uint32_t to) { return part(src, to); }, [&](uint32_t from) { return slot(slots, from); });
    sum(mine, slots);
  }
  void exchange(const Box& dst, const Box& src) {
    copy(part(dst, rank_), part(src, rank_));
    with_all([&](uint32_t to) { return part(src, to); }, [&](uint32_t from) { return part(dst, from); });
  }
  void reduce_at_all(const Box& dst, const Box& src) {
    const uint32_t slots = addends(dst);
    copy(slot(slots, rank_), src);
    with_all([&](uint32_t) { return src; }, [&](uint32_t from) { return slot(slots, from); });
    sum(dst, slots);
  }

  Concrete& made_;
  const Schedule& s_;
  const Mover mover_;
  Diagnostics& out_;
  uint32_t rank_ = 0;
  const Step* of_ = nullptr;  // the collective
  std::map<std::tuple<uint32_t, uint32_t, std::vector<uint64_t>>, uint32_t> addends_;
};

/// Checks that the k-th collectives of all ranks are the same, and that all ranks have equally many. Their
/// transfers match only in this order.
class Agreement {
 public:
  Agreement(const Concrete& made, const Schedule& schedule, Diagnostics& findings)
      : made_(made), s_(schedule), out_(findings), by_rank_(made.ranks) {}

  bool all(const std::vector<Collective>& collectives) {
    for (const Collective& one : collectives) by_rank_[one.rank].push_back(&one);
    for (uint32_t rank = 1; rank < made_.ranks; ++rank)
      if (!agrees(rank)) return false;
    return true;
  }

 private:
  using List = std::vector<const Collective*>;

  const Step& step(const Collective& one) const { return made_.steps[one.rank][one.step]; }
  std::string place(const Collective& one) const { return where(one.rank, step(one)); }

  std::string words(const Collective& one) const {
    std::string words = one.kind;
    if (has_root(one)) words += fmt::format(" with root {}", one.root);
    if (reduces(one)) words += fmt::format(" with {}", reduce_op_name(one.reduce));
    return fmt::format("{} of {} bytes of {} ({}) to {} bytes of {}", words, one.src.bytes,
                       text(made_, one.src), dtype_name(type(one)), one.dst.bytes, text(made_, one.dst));
  }

  static bool has_root(const Collective& one) { return collective_row(one.kind).has_root(); }
  static bool reduces(const Collective& one) { return collective_row(one.kind).reduces(); }
  DType type(const Collective& one) const { return made_.tensors[one.src.tensor].dtype; }

  bool same(const Collective& one, const Collective& other) const {
    return one.kind == other.kind && (!has_root(one) || one.root == other.root) &&
           (!reduces(one) || one.reduce == other.reduce) && one.src.bytes == other.src.bytes &&
           one.dst.bytes == other.dst.bytes && type(one) == type(other);
  }

  /// Returns which tensors the collectives use, in order. Ranks may use different tensors, but not the same
  /// ones in a different order.
  static std::vector<std::pair<uint32_t, uint32_t>> tensors(const List& list) {
    std::vector<std::pair<uint32_t, uint32_t>> all;
    for (const Collective* one : list) all.emplace_back(one->src.tensor, one->dst.tensor);
    return all;
  }

  bool agrees(uint32_t rank) {
    const List &first = by_rank_[0], &mine = by_rank_[rank];
    const size_t both = std::min(first.size(), mine.size());
    for (size_t k = 0; k < both; ++k)
      if (!same(*first[k], *mine[k])) return differ(k, *first[k], *mine[k]);
    if (first.size() != mine.size()) {
      const Collective& left = *(first.size() > both ? first : mine)[both];
      report(out_, s_, "matching", step(left).at,
             fmt::format("rank {} comes to this {}, but rank 0 makes {} and rank {} {}", left.rank, left.kind,
                         count(first.size(), "collective"), rank, mine.size()),
             "every rank takes part in every collective");
      return false;
    }
    auto theirs = tensors(first), ours = tensors(mine);
    if (theirs == ours) return true;
    const size_t k = size_t(std::mismatch(theirs.begin(), theirs.end(), ours.begin()).first - theirs.begin());
    std::sort(theirs.begin(), theirs.end());
    std::sort(ours.begin(), ours.end());
    return theirs != ours || differ(k, *first[k], *mine[k]);
  }

  /// Reports that a collective differs from rank 0's.
  /// \returns false
  bool differ(size_t k, const Collective& first, const Collective& mine) {
    Diagnostic* finding = report(out_, s_, "matching", step(mine).at,
                                 fmt::format("collective {} on {} is {}, but that of rank 0 is {}", k + 1,
                                             place(mine), words(mine), words(first)),
                                 "let all ranks make the same collectives in the same order");
    note(finding, s_, step(first).at, fmt::format("the one of rank 0, on {}", place(first)));
    return false;
  }

  const Concrete& made_;
  const Schedule& s_;
  Diagnostics& out_;
  std::vector<List> by_rank_;
};

}  // namespace

void expand_collectives(Concrete& made, const std::vector<Collective>& collectives, const Schedule& schedule,
                        Mover mover, Diagnostics& findings) {
  if (collectives.empty()) return;
  if (Agreement(made, schedule, findings).all(collectives))
    Expander(made, schedule, mover, findings).all(collectives);
}

}  // namespace chorale::schedule
