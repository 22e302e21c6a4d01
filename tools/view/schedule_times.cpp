#include "tools/view/schedule_times.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <utility>

namespace chorale::tools {
namespace {

using schedule::Step;
using schedule::StepKind;

uint64_t bytes_of(const std::vector<schedule::Box>& boxes) {
  uint64_t bytes = 0;
  for (const schedule::Box& box : boxes) bytes += box.bytes;
  return bytes;
}

/// Returns true if the step only orders others, and nothing of it runs on the GPU.
bool only_orders(StepKind kind) { return kind == StepKind::after || kind == StepKind::mark; }

/// Returns true if the step's time is a wait, which begins when the step before it ends.
bool only_waits(StepKind kind) {
  return only_orders(kind) || kind == StepKind::take || kind == StepKind::barrier;
}

/// Simulates the steps in the order of the times at which they can begin.
class Prediction {
 public:
  Prediction(const Picture& picture, const schedule::Concrete& made, const std::vector<const Step*>& steps,
             const SchedulePrediction& how)
      : made_(made), steps_(steps), how_(how), machine_(*how.machine), ports_(made.ranks) {
    nodes_.resize(steps.size());
    std::map<const Step*, uint32_t> number_of;
    uint32_t number = 0;
    for (const PictureRow& row : picture.rows) {
      for (size_t k = 0; k < row.ops.size(); ++k, ++number) {
        nodes_[number].rank = row.rank;
        number_of[steps[number]] = number;
        if (k) add_order(number - 1, number, true);
        for (const uint32_t other : row.ops[k].awaits) add_order(other, number, false);
      }
    }
    for (uint32_t rank = 0; rank < made.ranks; ++rank) {
      std::map<std::string, size_t> launches;
      for (size_t at = 0; at < made.steps[rank].size(); ++at) {
        const Step& step = made.steps[rank][at];
        Node& node = nodes_[number_of.at(&step)];
        if (how.eager) node.enqueued = double(at + 1) * machine_.enqueue_ns;
        if (step.kind == StepKind::launch) node.launch = launches[step.name]++;
      }
    }
  }

  std::vector<PictureSpan> run() {
    for (uint32_t number = 0; number < nodes_.size(); ++number)
      if (!nodes_[number].open) make_ready(number);
    while (!ready_.empty()) {
      const uint32_t number = ready_.top().second;
      ready_.pop();
      go(number);
    }
    std::vector<PictureSpan> spans;
    for (const Node& node : nodes_) {
      if (node.end < 0) {
        spans.emplace_back();
      } else {
        spans.push_back({std::llround(node.shown), std::llround(node.end)});
      }
    }
    return spans;
  }

 private:
  struct Node {
    uint32_t rank = 0, open = 0;
    double begin = 0;     ///< when the step before it on its stream has ended
    double released = 0;  ///< when what it waits for has happened
    double enqueued = 0;  ///< when the host has enqueued it
    double shown = 0;     ///< when it runs: after `begin`, the time that the GPU needs to begin a kernel
    double end = -1;
    size_t launch = 0;     ///< how many launches of the plan come before it on its rank
    size_t under_way = 0;  ///< number of its transfers that have not ended
    double arrived = 0;    ///< when the last of its transfers so far has ended
    std::vector<std::pair<uint32_t, bool>> next;  ///< true: on the same stream
  };
  /// Says until when the ways out of a GPU and into it are taken.
  struct Ports {
    double out = 0, in = 0;
  };

  void add_order(uint32_t before, uint32_t after, bool stream) {
    if (before == after || before >= nodes_.size()) return;
    nodes_[before].next.emplace_back(after, stream);
    ++nodes_[after].open;
  }

  void make_ready(uint32_t number) {
    const Node& node = nodes_[number];
    ready_.emplace(std::max({node.begin, node.released, node.enqueued}), number);
  }

  /// Returns how long after the end of a step another rank's step knows of it.
  double transit_to(const Step& step) const {
    if (step.kind == StepKind::take) return machine_.signal_ns + machine_.release_ns;
    return step.kind == StepKind::barrier ? machine_.signal_ns : 0;
  }

  void end(uint32_t number, double at) {
    Node& node = nodes_[number];
    node.end = std::max(at, node.begin);
    for (const auto& [next, stream] : node.next) {
      Node& other = nodes_[next];
      if (stream)
        other.begin = node.end;
      else
        other.released = std::max(other.released, node.end + transit_to(*steps_[next]));
      if (!--other.open) make_ready(next);
    }
  }

  /// Reserves the ways of both GPUs, and returns when the bytes have arrived.
  double send(uint32_t from, uint32_t to, double at, uint64_t bytes, double gb_s) {
    const double begin = std::max({at, ports_[from].out, ports_[to].in});
    return ports_[from].out = ports_[to].in = begin + double(bytes) / gb_s;
  }

  double through_memory(const Step& step, double at) const {
    return at + machine_.read_ns +
           double(bytes_of(step.reads) + bytes_of(step.writes)) / machine_.memory_gb_s;
  }

  void go(uint32_t number) {
    const Step& step = *steps_[number];
    Node& node = nodes_[number];
    double at = std::max({node.begin, node.released, node.enqueued});
    if (!only_orders(step.kind)) at += how_.eager ? machine_.launch_eager_ns : machine_.launch_graph_ns;
    node.shown = only_waits(step.kind) ? node.begin : at;
    switch (step.kind) {
      case StepKind::put:
        return end(number, send(node.rank, step.peer, at + machine_.copy_engine_ns, bytes_of(step.reads),
                                machine_.link_copy_engine_gb_s));
      case StepKind::get:
        return end(number, send(step.peer, node.rank, at + machine_.copy_engine_ns, bytes_of(step.writes),
                                machine_.link_copy_engine_gb_s));
      case StepKind::exchange:
        return begin_transfers(number, at);
      case StepKind::launch:
        return begin_launch(number, at);
      case StepKind::call:
        if (const double known = how_.time_of(step); known >= 0) return end(number, at + known);
        return end(number, through_memory(step, at));
      case StepKind::copy:
      case StepKind::fill:
        return end(number, through_memory(step, at));
      default:
        return end(number, at);
    }
  }

  /// Begins a launch when all ranks have come to it.
  void begin_launch(uint32_t number, double at) {
    const Step& step = *steps_[number];
    std::vector<uint32_t>& here = launches_[{step.name, nodes_[number].launch}];
    here.push_back(number);
    if (here.size() < made_.ranks) return;
    const double known = how_.time_of(step);
    const double last = known >= 0 ? at + known : through_memory(step, at);
    for (const uint32_t one : std::exchange(here, {})) end(one, last);
  }

  /// Begins those transfers of a step whose other ends have come.
  void begin_transfers(uint32_t number, double at) {
    const Step& step = *steps_[number];
    nodes_[number].under_way = step.transfers.size();
    nodes_[number].arrived = at;
    if (step.transfers.empty()) return end(number, at);
    for (const schedule::ConcreteTransfer& transfer : step.transfers) {
      if (transfer.peer == nodes_[number].rank) {
        end_transfer(number, at);
        continue;
      }
      std::vector<uint32_t>& here = transfers_[transfer.pair];
      here.push_back(number);
      if (here.size() < 2) continue;
      const schedule::Pair& pair = made_.pairs[transfer.pair];
      const double arrived = send(pair.send.rank, pair.recv.rank, at + machine_.signal_ns, transfer.box.bytes,
                                  machine_.link_put_gb_s);
      for (const uint32_t one : std::exchange(here, {})) end_transfer(one, arrived);
    }
  }

  void end_transfer(uint32_t number, double at) {
    Node& node = nodes_[number];
    node.arrived = std::max(node.arrived, at);
    if (!--node.under_way) end(number, node.arrived);
  }

  const schedule::Concrete& made_;
  const std::vector<const Step*>& steps_;
  const SchedulePrediction& how_;
  const Machine& machine_;
  std::vector<Node> nodes_;
  std::vector<Ports> ports_;
  /// These hold the steps that have come to a launch, and to a transfer, and wait for the others.
  std::map<std::pair<std::string, size_t>, std::vector<uint32_t>> launches_;
  std::map<uint32_t, std::vector<uint32_t>> transfers_;
  std::priority_queue<std::pair<double, uint32_t>, std::vector<std::pair<double, uint32_t>>, std::greater<>>
      ready_;
};

}  // namespace

PictureTimes predict_schedule(const Picture& picture, const schedule::Concrete& made,
                              const std::vector<const schedule::Step*>& steps,
                              const SchedulePrediction& how) {
  PictureTimes times{
      "predicted on " + how.machine->name + (how.eager ? ", enqueued one by one" : ", in a CUDA graph"),
      false,
      {}};
  times.spans = Prediction(picture, made, steps, how).run();
  return times;
}

}  // namespace chorale::tools
