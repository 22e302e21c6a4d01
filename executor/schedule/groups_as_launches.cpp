#include "groups_as_launches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "chorale/compile.hpp"
#include "chorale/device/packet.hpp"
#include "copies.hpp"

namespace chorale::schedule_run {

using schedule::Box;
using schedule::Concrete;
using schedule::ConcreteTensor;
using schedule::ConcreteTransfer;
using schedule::Step;
using schedule::StepKind;

namespace {

/// The blocks wait for each other, so all must run at the same time.
constexpr uint32_t most_blocks_of_a_rank = 64, most_blocks_of_a_transfer = 8;

/// Describes a transfer from a chunk of one rank's input to a chunk of another rank's output, or of its own.
struct Route {
  uint32_t from = 0, to = 0, sent = 0, received = 0;
  uint32_t at = 0;  ///< the author's line, as in Op::at
};

/// Holds the transfers of the n-th groups of all ranks.
struct Exchange {
  std::string name;  ///< the name of its plan
  std::vector<Route> routes;
  std::vector<SourceLine> lines;
  uint32_t sends = 0, receives = 0;  ///< the largest number on one rank
  uint64_t slot = 0;                 ///< bytes of a chunk: the longest transfer
  /// This is true if every rank sends and receives one contiguous range, and all are of one length, so no
  /// staging is needed.
  bool direct = true;
  uint32_t sent = 0, received = 0;  ///< otherwise the positions of the staging buffers among the tensors
};

bool goes_by_plan(const Step& step) {
  return step.kind == StepKind::exchange && step.transfers.at(0).mover == schedule::Mover::plan;
}

// -- The plan

/// Adds a channel to a peer. Returns its number on this rank.
uint32_t add_channel(Gpu& gpu, uint32_t peer) {
  if (gpu.channels.empty()) gpu.channels.emplace_back();
  gpu.channels[0].connected_to.push_back(peer);
  return uint32_t(gpu.channels[0].connected_to.size() - 1);
}

uint32_t output_of(Gpu& gpu, uint32_t peer) {
  for (uint32_t at = 0; at < gpu.remote_buffers.size(); ++at)
    if (gpu.remote_buffers[at].rank == peer) return at;
  gpu.remote_buffers.push_back({.rank = peer, .buffer = BufferKind::output, .access = {ChannelType::memory}});
  return uint32_t(gpu.remote_buffers.size() - 1);
}

ThreadBlock& add_block(Gpu& gpu) {
  ThreadBlock& block = gpu.threadblocks.emplace_back();
  block.id = uint32_t(gpu.threadblocks.size() - 1);
  return block;
}

void control(ThreadBlock& block, Opcode code, uint32_t at) {
  const uint32_t channel = 0;
  Op& op = append(block, code, {}, {}, {&channel, 1});
  op.via = ChannelType::memory;
  op.sync = SyncType::both;
  op.at = at;
}

/// Adds the thread blocks that send and receive a chunk. Each chunk has its own blocks, so that none waits
/// for another.
void add_route(Plan& plan, const Route& route) {
  Gpu &sender = plan.gpus[route.from], &receiver = plan.gpus[route.to];
  const Operand from{.index = route.sent, .size = 1, .ref = uint32_t(BufferKind::input)};
  if (route.from == route.to) {
    const Operand to{.index = route.received, .size = 1, .ref = uint32_t(BufferKind::output)};
    append(add_block(sender), Opcode::copy, {&from, 1}, {&to, 1}).at = route.at;
    return;
  }
  ThreadBlock& sends = add_block(sender);
  sends.channels = {{ChannelType::memory, {add_channel(sender, route.to)}}};
  sends.remote_buffers = {{ChannelType::memory, {output_of(sender, route.to)}}};
  control(sends, Opcode::wait, route.at);
  const Operand to{.index = route.received, .size = 1, .ref = 0};
  Op& put = append(sends, Opcode::put, {&from, 1}, {&to, 1});
  put.via = ChannelType::memory;
  put.at = route.at;
  control(sends, Opcode::signal, route.at);

  ThreadBlock& receives = add_block(receiver);
  receives.channels = {{ChannelType::memory, {add_channel(receiver, route.from)}}};
  control(receives, Opcode::signal, route.at);  // announces that its output may be written
  control(receives, Opcode::wait, route.at);
}

/// Makes the plan of an exchange. The plan is proved, as all plans of compile() are. It is also certified,
/// because executors that require a certificate cannot get it from anyone else.
Plan plan_of(const Exchange& exchange, uint32_t ranks) {
  Plan plan;
  plan.name = exchange.name;
  plan.collective = "custom";
  plan.source = exchange.lines;
  plan.gpus.resize(ranks);
  plan.extension.post.resize(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    plan.gpus[rank].id = rank;
    plan.gpus[rank].chunks[size_t(BufferKind::input)] = exchange.sends;
    plan.gpus[rank].chunks[size_t(BufferKind::output)] = exchange.receives;
    plan.extension.post[rank].resize(exchange.receives);
  }
  for (const Route& route : exchange.routes) {
    add_route(plan, route);
    plan.extension.post[route.to][route.received] = {{route.from, route.sent}};
  }
  const uint32_t fit = std::max(1u, most_blocks_of_a_rank / (exchange.sends + exchange.receives));
  const uint32_t instances = std::min(fit, blocks_for(exchange.slot, most_blocks_of_a_transfer));
  const Diagnostics findings = compile(plan, {.instances = instances, .certify = true});
  if (!findings.empty()) throw std::logic_error(render(plan, findings));
  return plan;
}

// -- The schedule

/// Holds the place of one end of a transfer among those of its group.
struct Place {
  bool here = false;
  uint32_t rank = 0, slot = 0;
};

class Groups {
 public:
  Groups(const schedule::Schedule& schedule, Concrete& made, BlockPlans& plans)
      : schedule_(schedule), made_(made), plans_(plans) {}

  void all() {
    for (uint32_t rank = 0; rank < made_.ranks; ++rank) {
      std::vector<const Step*>& mine = groups_.emplace_back();
      for (const Step& step : made_.steps[rank])
        if (goes_by_plan(step)) mine.push_back(&step);
      if (mine.size() == groups_[0].size()) continue;
      throw UsageError(fmt::format(
          "via 'plan' rank 0 moves {} group{}, but rank {} moves {}: every rank takes part in every launch; "
          "use another mover",
          groups_[0].size(), groups_[0].size() == 1 ? "" : "s", rank, mine.size()));
    }
    if (groups_.empty() || groups_[0].empty()) return;
    for (size_t round = 0; round < groups_[0].size(); ++round) exchanges_.push_back(exchange_of(round));
    check_names();
    for (Exchange& exchange : exchanges_) {
      plans_.insert_or_assign(exchange.name, plan_of(exchange, made_.ranks));
      if (!exchange.direct) add_rooms(exchange);
    }
    for (uint32_t rank = 0; rank < made_.ranks; ++rank) replace(rank);
  }

 private:
  Exchange exchange_of(size_t round) const {
    Exchange all;
    all.name = fmt::format("group {} via 'plan'", round + 1);
    std::vector<Place> sent(made_.pairs.size()), received(made_.pairs.size());
    for (uint32_t rank = 0; rank < made_.ranks; ++rank) {
      uint32_t sends = 0, receives = 0;
      for (const ConcreteTransfer& one : groups_[rank][round]->transfers) {
        (one.is_send ? sent : received)[one.pair] = {true, rank, one.is_send ? sends++ : receives++};
        all.slot = std::max(all.slot, one.box.bytes);
        const ConcreteTransfer& first = groups_[0][round]->transfers[0];
        all.direct = all.direct && one.box.contiguous && one.box.bytes == first.box.bytes &&
                     made_.tensors[one.box.tensor].dtype == made_.tensors[first.box.tensor].dtype;
      }
      all.direct = all.direct && sends == 1 && receives == 1;
      all.sends = std::max(all.sends, sends);
      all.receives = std::max(all.receives, receives);
    }
    if (!all.direct) all.slot = units_of(all.slot) * unit_bytes;
    for (uint32_t rank = 0; rank < made_.ranks; ++rank) {
      const Step& step = *groups_[rank][round];
      for (const ConcreteTransfer& one : step.transfers) {
        if (!(one.is_send ? received : sent)[one.pair].here) refuse(rank, step, one, round);
        if (!one.is_send) continue;
        const Place &from = sent[one.pair], &to = received[one.pair];
        all.routes.push_back({from.rank, to.rank, from.slot, to.slot, line_in(all, one.at)});
      }
    }
    return all;
  }

  /// Refuses an application's plan, or a launch, that has the name of a group, because it would be taken for
  /// the group's plan.
  void check_names() const {
    for (const Exchange& exchange : exchanges_) {
      const auto launches = [&](const Step& step) {
        return step.kind == StepKind::launch && step.name == exchange.name;
      };
      const auto& steps = made_.steps[0];
      if (!plans_.count(exchange.name) && std::none_of(steps.begin(), steps.end(), launches)) continue;
      throw UsageError(fmt::format(
          "a plan of the application is called \"{}\", which is the name of a group of transfers: give "
          "it another name in the schedule and in ScheduleArguments::plans",
          exchange.name));
    }
  }

  uint32_t line_in(Exchange& all, uint32_t at) const {
    const SourceLine line = schedule_.line_of(at);
    if (line.line == 0) return 0;
    const auto found = std::find(all.lines.begin(), all.lines.end(), line);
    const uint32_t position = uint32_t(found - all.lines.begin());
    if (found == all.lines.end()) all.lines.push_back(line);
    return position + 1;
  }

  [[noreturn]] void refuse(uint32_t rank, const Step& step, const ConcreteTransfer& one, size_t round) const {
    const SourceLine line = schedule_.line_of(step.at);
    throw UsageError(fmt::format(
        "group {} of transfers via 'plan' of {}{} has a {} rank {}, but that end is not in group {} there: "
        "all ranks take part in one launch, so these groups must exchange only with each other; "
        "let the n-th groups of the ranks match (a Lowering's orders rotated and ring do), or use "
        "another mover",
        round + 1, where(rank, step), line.line ? fmt::format(" ({}:{})", line.file, line.line) : "",
        one.is_send ? "send to" : "recv from", one.peer, round + 1));
  }

  uint32_t add_room(const std::string& name, uint64_t bytes) {
    ConcreteTensor& room = made_.tensors.emplace_back();
    room.name = name;
    room.dtype = DType::u8;
    room.shape = {bytes};
    room.bytes = bytes;
    return uint32_t(made_.tensors.size() - 1);
  }

  void add_rooms(Exchange& of) {
    of.sent = add_room(of.name + ", sent", of.sends * of.slot);
    of.received = add_room(of.name + ", received", of.receives * of.slot);
  }

  static Box part(uint32_t room, uint64_t begin, uint64_t bytes) {
    Box box;
    box.tensor = room;
    box.lo = {begin};
    box.extent = box.shape = {bytes};
    box.strides = {1};
    box.offset_bytes = begin;
    box.bytes = bytes;
    return box;
  }

  static Step like(const Step& group, StepKind kind, Box to, Box from) {
    Step step;
    step.kind = kind;
    step.stream = group.stream;
    step.at = group.at;
    step.turn = group.turn;
    step.writes = {std::move(to)};
    step.reads = {std::move(from)};
    return step;
  }

  static void directly(const Step& group, const Exchange& by, std::vector<Step>& steps) {
    const bool first_sends = group.transfers[0].is_send;
    launch(group, by, group.transfers[first_sends].box, group.transfers[!first_sends].box, steps);
  }

  void through_rooms(const Step& group, const Exchange& by, std::vector<Step>& steps) const {
    uint64_t sends = 0, receives = 0;
    for (const ConcreteTransfer& one : group.transfers)
      if (one.is_send)
        steps.push_back(
            like(group, StepKind::copy, part(by.sent, sends++ * by.slot, one.box.bytes), one.box));
    launch(group, by, part(by.received, 0, made_.tensors[by.received].bytes),
           part(by.sent, 0, made_.tensors[by.sent].bytes), steps);
    for (const ConcreteTransfer& one : group.transfers)
      if (!one.is_send)
        steps.push_back(
            like(group, StepKind::copy, one.box, part(by.received, receives++ * by.slot, one.box.bytes)));
  }

  static void launch(const Step& group, const Exchange& by, Box to, Box from, std::vector<Step>& steps) {
    steps.push_back(like(group, StepKind::launch, std::move(to), std::move(from)));
    steps.back().name = by.name;
  }

  void replace(uint32_t rank) {
    std::vector<Step> steps;
    size_t round = 0;
    for (Step& step : made_.steps[rank]) {
      if (!goes_by_plan(step)) {
        steps.push_back(std::move(step));
        continue;
      }
      const Exchange& by = exchanges_[round++];
      by.direct ? directly(step, by, steps) : through_rooms(step, by, steps);
    }
    made_.steps[rank] = std::move(steps);
  }

  const schedule::Schedule& schedule_;
  Concrete& made_;
  BlockPlans& plans_;
  std::vector<std::vector<const Step*>> groups_;  // by rank
  std::vector<Exchange> exchanges_;
};

}  // namespace

void groups_as_launches(const schedule::Schedule& schedule, Concrete& made, BlockPlans& plans) {
  Groups(schedule, made, plans).all();
}

}  // namespace chorale::schedule_run
