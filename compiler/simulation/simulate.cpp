#include "chorale/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "engine.hpp"
#include "network.hpp"

namespace chorale {
namespace {

using namespace simulation;

std::vector<TraceSpan> spans_of(const Plan& plan, uint64_t bytes, const Recording& recording,
                                const Times& times) {
  std::vector<TraceSpan> spans;
  for (size_t chain = 0; chain < times.ops.size(); ++chain) {
    const uint32_t rank = recording.ranks[chain], position = recording.positions[chain];
    const ThreadBlock& block = plan.gpus[rank].threadblocks[position];
    const std::vector<OpTime>& ops = times.ops[chain];
    for (size_t at = 0; at < ops.size(); ++at) {
      const Op& op = block.ops[ops[at].op];
      const double end = at + 1 < ops.size() ? ops[at + 1].begin_ns : times.ends_ns[chain];
      spans.push_back({plan.name, rank, position, ops[at].op, info(op.code).name, plan.line_of(op), 1,
                       uint64_t(std::llround(ops[at].begin_ns)), uint64_t(std::llround(end)), bytes});
    }
  }
  return spans;
}

/// Returns how many threads of a block have work at the same time, as the executor counts them.
uint32_t busy_threads(const Recording& recording, const std::vector<Cost>& costs, PacketForm form) {
  constexpr double unit_bytes = 16, warp = 32, least = 64, most = 512;
  const PacketPayload payload = payload_of(form);
  double bytes = 0;
  for (size_t at = 0; at < costs.size(); ++at) {
    const Move& move = recording.moves[at];
    const bool lines = form == PacketForm::ll128 && move.packet_reads + move.packet_writes + move.packet_puts;
    bytes = std::max(bytes, costs[at].bytes * (lines ? double(payload.stored) / payload.bytes : 1));
  }
  return uint32_t(std::clamp(std::ceil(bytes / unit_bytes / warp) * warp, least, most));
}

/// Returns about the longer of two times. The times of the host vary from launch to launch, so that if both
/// are close, each is sometimes the longer one.
double longer_of(double a, double b) {
  constexpr double sharpness = 8;
  const double most = std::max(a, b), least = std::min(a, b);
  return most == 0 ? 0 : most * std::pow(1 + std::pow(least / most, sharpness), 1 / sharpness);
}

double launch_ns(const Plan& plan, const Machine& machine, bool eager, const Recording& recording,
                 uint32_t threads) {
  size_t blocks = 0;
  for (const Gpu& gpu : plan.gpus) blocks = std::max(blocks, gpu.threadblocks.size());
  const bool reduces = std::any_of(recording.moves.begin(), recording.moves.end(),
                                   [](const Move& move) { return move.combined != 0; });
  const double room = reduces ? machine.multiprocessor_reduce_threads : machine.multiprocessor_threads;
  const double resident = machine.multiprocessors * std::floor(room / threads);
  const bool beside = double(4 * blocks) <= resident;  // as next_may_stand_beside() of the executor
  return (eager ? machine.launch_eager_ns + double(plan.ranks()) * machine.launch_rank_ns
                : machine.launch_graph_ns) +
         (beside ? 0 : machine.launch_apart_ns) + double(blocks) * machine.launch_block_ns;
}

}  // namespace

struct Simulator::State {
  const Plan& plan;
  std::optional<Recording> recording;
  // of the last machine that had a topology
  Topology topology;
  std::optional<Routes> routes;

  /// Returns the routes of a machine's topology; null if it has none.
  const Routes* routes_of(const Machine& machine) {
    if (machine.topology.nodes.empty()) return nullptr;
    if (!routes || machine.topology != topology) {
      topology = machine.topology;
      routes.emplace(topology);
    }
    check_fits(plan, topology, *routes);
    return &*routes;
  }
};

Simulator::Simulator(const Plan& plan) : state_(new State{plan, {}, {}, {}}) {}
Simulator::~Simulator() = default;
Simulator::Simulator(Simulator&&) noexcept = default;

Simulation Simulator::simulate(const SimulatedCall& call, const Machine& machine) {
  const Plan& plan = state_->plan;
  const Routes* const routes = state_->routes_of(machine);
  const PacketForm form = call.packet.value_or(packet_form_by_size(plan, call.bytes));
  const Layout layout = layout_of(plan, call.bytes, call.dtype, form);
  const proof::Message message = recorded_message(plan, layout.chunk_bytes);
  std::optional<Recording>& recording = state_->recording;
  const bool known = recording && recording->message.chunk == message.chunk &&
                     recording->message.unit == message.unit && recording->message.bytes == message.bytes;
  if (!known) recording = record(plan, message);

  const std::vector<double> coded_parts = coded_parts_of(plan, call.dtype);
  const std::vector<Cost> costs = list_costs(*recording, layout, machine, form, coded_parts);
  Times times = run(*recording, costs, machine, routes, plan.ranks(), call.spans);
  Simulation result;
  result.launch_ns = launch_ns(plan, machine, call.eager, *recording, busy_threads(*recording, costs, form));
  result.ns = times.end_ns + result.launch_ns;
  if (call.eager) result.ns = longer_of(result.ns, machine.enqueue_ns);
  result.ops = recording->ops;
  result.spans = spans_of(plan, call.bytes, *recording, times);
  result.links = std::move(times.links);
  result.topology_busy_ns = std::move(times.topology_busy_ns);
  return result;
}

Simulation simulate(const Plan& plan, const SimulatedCall& call, const Machine& machine) {
  return Simulator(plan).simulate(call, machine);
}

}  // namespace chorale
