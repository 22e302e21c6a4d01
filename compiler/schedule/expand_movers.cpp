// This file replaces transfers by the steps that move their bytes.

#include <map>

#include "chorale/schedule/concrete.hpp"

namespace chorale::schedule {
namespace {

bool by_copy_engine(Mover mover) { return mover == Mover::ce_put || mover == Mover::ce_get; }

class MoverExpander {
 public:
  explicit MoverExpander(const Concrete& made)
      : in_(made),
        out_{.ranks = made.ranks,
             .tensors = made.tensors,
             .streams = made.streams,
             .steps = std::vector<std::vector<Step>>(made.ranks),
             .pairs = made.pairs,
             .flags = made.flags} {}

  Concrete all() {
    for (const Pair& pair : in_.pairs) flags(pair);
    for (uint32_t rank = 0; rank < in_.ranks; ++rank) {
      const std::vector<bool> marked = left_behind(in_.steps[rank]);
      for (uint32_t k = 0; k < in_.steps[rank].size(); ++k) {
        const Step& step = in_.steps[rank][k];
        if (step.kind == StepKind::wait) {
          wait(rank, step, marked[step.token]);
          continue;
        }
        if (step.kind == StepKind::group) {
          group(rank, step);
        } else {
          out_.steps[rank].push_back(step);
        }
        if (marked[k]) add(rank, StepKind::mark, step, step.at).token = k + 1;
      }
    }
    return std::move(out_);
  }

 private:
  /// Finds groups that another stream waits for after their stream has got more work. The other stream must
  /// not wait for the later work, such as the next transfer, so the end of such a group gets a mark.
  static std::vector<bool> left_behind(const std::vector<Step>& steps) {
    std::vector<bool> marked(steps.size());
    std::map<uint32_t, uint32_t> last;  // by stream
    for (uint32_t k = 0; k < steps.size(); ++k) {
      last[steps[k].stream] = k;
      if (steps[k].kind != StepKind::wait) continue;
      const uint32_t stream = steps[steps[k].token].stream;
      marked[steps[k].token] = stream != steps[k].stream && last.at(stream) != steps[k].token;
    }
    return marked;
  }

  /// Creates the credit and the data flag of a pair, next to each other. With ce_put the receiver owns the
  /// memory that is accessed remotely, with ce_get the sender.
  void flags(const Pair& pair) {
    first_flag_.push_back(uint32_t(out_.flags.size()));
    if (!by_copy_engine(pair.mover)) return;
    const Pair::End& owner = pair.mover == Mover::ce_put ? pair.recv : pair.send;
    const Pair::End& mover = pair.mover == Mover::ce_put ? pair.send : pair.recv;
    const ConcreteTransfer& at = in_.steps[owner.rank][owner.step].transfers[owner.transfer];
    const std::string of = text(in_, at.box);
    out_.flags.push_back(
        {ConcreteFlag::Use::credit, Flag::Kind::binary, owner.rank, mover.rank, "credit of " + of, at.at});
    out_.flags.push_back(
        {ConcreteFlag::Use::data, Flag::Kind::binary, mover.rank, owner.rank, "data of " + of, at.at});
  }

  /// Returns whether this end owns the memory that the other end accesses.
  static bool owns(const ConcreteTransfer& one) { return one.is_send == (one.mover == Mover::ce_get); }

  Step& add(uint32_t rank, StepKind kind, const Step& of, uint32_t at) {
    Step step;
    step.kind = kind;
    step.stream = of.stream;
    step.at = at;
    step.turn = of.turn;
    return out_.steps[rank].emplace_back(std::move(step));
  }

  void flag(uint32_t rank, StepKind kind, const Step& of, const ConcreteTransfer& one, uint32_t which) {
    Step& step = add(rank, kind, of, one.at);
    step.flag = first_flag_[one.pair] + which;
    step.peer = one.peer;
  }

  void group(uint32_t rank, const Step& step) {
    for (const ConcreteTransfer& one : step.transfers)
      if (by_copy_engine(one.mover) && owns(one)) flag(rank, StepKind::post, step, one, 0);
    for (const ConcreteTransfer& one : step.transfers) {
      if (!by_copy_engine(one.mover) || owns(one)) continue;
      flag(rank, StepKind::take, step, one, 0);
      const Pair& pair = in_.pairs[one.pair];
      const Pair::End& end = one.is_send ? pair.recv : pair.send;
      const Box& other = in_.steps[end.rank][end.step].transfers[end.transfer].box;
      Step& move = add(rank, one.is_send ? StepKind::put : StepKind::get, step, one.at);
      move.reads = {one.is_send ? one.box : other};
      move.writes = {one.is_send ? other : one.box};
      move.peer = one.peer;
      flag(rank, StepKind::post, step, one, 1);
    }
    for (const Mover mover : {Mover::automatic, Mover::plan}) {
      std::vector<ConcreteTransfer> together;
      for (const ConcreteTransfer& one : step.transfers)
        if (one.mover == mover) together.push_back(one);
      if (together.empty()) continue;
      const uint32_t position = uint32_t(out_.steps[rank].size());
      for (uint32_t k = 0; k < together.size(); ++k)
        (together[k].is_send ? out_.pairs[together[k].pair].send : out_.pairs[together[k].pair].recv) = {
            rank, position, k};
      add(rank, StepKind::exchange, step, step.at).transfers = std::move(together);
    }
  }

  void wait(uint32_t rank, const Step& step, bool marked) {
    const Step& made = in_.steps[rank][step.token];
    if (made.stream != step.stream) {
      Step& after = add(rank, StepKind::after, step, step.at);
      after.streams = {made.stream};
      if (marked) after.token = step.token + 1;
    }
    for (const ConcreteTransfer& one : made.transfers)
      if (by_copy_engine(one.mover) && owns(one)) flag(rank, StepKind::take, step, one, 1);
  }

  const Concrete& in_;
  Concrete out_;
  std::vector<uint32_t> first_flag_;
};

}  // namespace

Concrete expand_movers(const Concrete& made) { return MoverExpander(made).all(); }

}  // namespace chorale::schedule
