#include "steps.hpp"

#include "compiler/plan/resolve.hpp"

namespace chorale::proof {
namespace {

using Kind = SymbolicStep::Kind;

/// Holds the accesses of one operand in SymbolicSteps::named: the first one and their number. Only an operand
/// with the members of a switch channel has several.
using Places = std::pair<uint32_t, uint32_t>;

class Listing {
 public:
  Listing(const Plan& plan, const Gpu& gpu, const ThreadBlock& block, const Op& op, SymbolicSteps& out)
      : plan_(plan), gpu_(gpu), block_(block), op_(op), row_(shape(op.code)), out_(out) {}

  void list() {
    out_.clear();
    if (op_.code == Opcode::nop) sync();
    if (row_.has(Role::Arrive)) arrive();
    if (row_.has_any(await_roles)) each_channel(Kind::await, row_.has(Role::AwaitRelaxed));
    if (row_.has(Role::Acquire)) each_id(Kind::acquire);
    // After a wait, all threads proceed together.
    if (row_.has_any(await_roles) || row_.has(Role::Acquire)) sync();

    const bool posts = row_.has_any(post_roles);
    const bool by_proxy = has_proxy(op_.via) && (posts || row_.has(Role::PortChannels));
    if (op_.sources || op_.destinations) data(by_proxy, posts);
    if (posts && by_proxy && !op_.sources) push_signals();
    if (posts && !by_proxy) {
      const bool relaxed = row_.has(Role::PostRelaxed);
      if (!relaxed) sync();
      each_channel(Kind::post, relaxed);
    }
    if (row_.has(Role::Release)) {
      sync();
      each_id(Kind::release);
    }
    if (row_.has(Role::Drain) && has_proxy(op_.via)) {
      each_channel(Kind::drain, false);
      sync();
    }
  }

 private:
  SymbolicStep& add(Kind kind) {
    SymbolicStep& step = out_.steps.emplace_back();
    step.kind = kind;
    return step;
  }
  void sync() { add(Kind::sync); }

  void arrive() {
    sync();
    SymbolicStep& step = add(Kind::arrive);
    step.id = block_.op_ids(op_)[0];
    step.participants = op_.participants;
    sync();
  }

  void name_channel(SymbolicStep& step, size_t position) const {
    step.id = uint32_t(channel_id(block_, op_.via, block_.op_ids(op_)[position]));
    step.position = uint32_t(position);
  }

  void each_channel(Kind kind, bool relaxed) {
    for (size_t position = 0; position < op_.ids; ++position) {
      SymbolicStep& step = add(kind);
      step.relaxed = relaxed;
      step.via = op_.via;
      name_channel(step, position);
    }
  }

  void each_id(Kind kind) {
    for (size_t position = 0; position < op_.ids; ++position) {
      SymbolicStep& step = add(kind);
      step.id = block_.op_ids(op_)[position];
      step.position = uint32_t(position);
    }
  }

  void data(bool by_proxy, bool posts) {
    places();
    const auto sources = std::span<const Places>(out_.operands).first(op_.sources);
    const auto dests = std::span<const Places>(out_.operands).subspan(op_.sources);
    const bool pairs = row_.sources.size() == 1 && row_.sources[0].many && row_.dests[0].many;
    if (!by_proxy) {
      if (!pairs) return move(sources, dests);
      for (size_t pair = 0; pair < sources.size(); ++pair)
        move(sources.subspan(pair, 1), dests.subspan(pair, 1));
      return;
    }
    // The block waits for packets here, because the proxy never waits for data.
    if (row_.has(Role::PacketRead)) move(sources, {});
    for (size_t pair = 0; pair < dests.size(); ++pair) {
      sync();
      SymbolicStep& step = add_move(Kind::push, sources.subspan(pairs ? pair : 0, 1), dests.subspan(pair, 1));
      step.via = op_.via;
      name_channel(step, pair);
      step.posts = posts;
    }
  }

  void push_signals() {
    for (size_t position = 0; position < op_.ids; ++position) {
      sync();
      SymbolicStep& step = add(Kind::push);
      step.via = op_.via;
      name_channel(step, position);
      step.posts = true;
    }
  }

  void move(std::span<const Places> sources, std::span<const Places> dests) {
    SymbolicStep& step = add_move(Kind::move, sources, dests);
    step.combines = row_.has(Role::Reduce);
    step.reduce_op = step.combines ? op_.reduce_op : ReduceOp::sum;
  }

  /// Adds a move. It copies the accesses, so that those of one step are consecutive.
  SymbolicStep& add_move(Kind kind, std::span<const Places> sources, std::span<const Places> dests) {
    SymbolicStep& step = add(kind);
    step.first = uint32_t(out_.accesses.size());
    step.sources = copy(sources);
    step.dests = copy(dests);
    return step;
  }

  uint32_t copy(std::span<const Places> places) {
    uint32_t n = 0;
    for (const Places& of : places) {
      out_.accesses.insert(out_.accesses.end(), out_.named.begin() + of.first,
                           out_.named.begin() + of.first + of.second);
      n += of.second;
    }
    return n;
  }

  void places() {
    const Operand* last = nullptr;
    for_each_place(plan_, gpu_, block_, op_,
                   [&](const Field& field, const Operand& operand, uint32_t rank, BufferKind buffer) {
                     if (&operand != last) out_.operands.emplace_back(uint32_t(out_.named.size()), 0);
                     last = &operand;
                     ++out_.operands.back().second;
                     out_.named.push_back({rank, buffer, is_write(field.role), is_packet(field.role),
                                           is_switched(field.role), operand.index,
                                           operand.index + operand.size, uint8_t(operand.codec)});
                   });
  }

  const Plan& plan_;
  const Gpu& gpu_;
  const ThreadBlock& block_;
  const Op& op_;
  const Shape& row_;
  SymbolicSteps& out_;
};

}  // namespace

void list_steps(const Plan& plan, const Gpu& gpu, const ThreadBlock& block, const Op& op,
                SymbolicSteps& out) {
  Listing(plan, gpu, block, op, out).list();
}

}  // namespace chorale::proof
