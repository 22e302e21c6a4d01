// Says how collectives run as plans and messages.

#include <algorithm>
#include <string_view>
#include <utility>

#include "communicator.hpp"

namespace chorale::nccl {
namespace {

constexpr uint64_t MiB = uint64_t(1) << 20;
/// Limits one rank's part of a chunk, see Communicator::add_chunks().
constexpr uint64_t most_part = 64 * MiB;
/// Limits broadcasts of which the root sends a copy to each of several peers.
constexpr uint64_t most_by_root = MiB / 4;

/// Returns the name of a reduce-scatter for buffers that peers must not access.
/// \param limit  the most thread blocks; 0: any number
std::string_view scatter_within(uint32_t limit) {
  constexpr std::pair<uint32_t, std::string_view> by_blocks[] = {{64, "reducescatter_staged_b64"},
                                                                 {24, "reducescatter_staged_b24"},
                                                                 {16, "reducescatter_staged_b16"},
                                                                 {8, "reducescatter_staged_b8"},
                                                                 {4, "reducescatter_staged"}};
  for (const auto& [blocks, name] : by_blocks)
    if (limit == 0 || blocks <= limit) return name;
  return "reducescatter_staged_b1";
}

}  // namespace

/// Returns the same collective for the rest of the message that add_chunks() leaves.
Communicator::Collective Communicator::tail_of(const Collective& collective, uint64_t begin) {
  Collective tail = collective;
  tail.shape.bytes = tail.arguments.bytes = collective.arguments.bytes - begin;
  tail.arguments.in = static_cast<const char*>(collective.arguments.in) + begin;
  if (tail.arguments.out) tail.arguments.out = static_cast<char*>(collective.arguments.out) + begin;
  return tail;
}

/// Adds the steps of a reduce or an all-reduce whose buffers peers must not access. It takes the message
/// chunk by chunk. A reduce-scatter of a chunk leaves each rank with one part, which it then sends to the
/// root, or to the others. The reduce-scatter writes to memory of its own, because in place it would
/// overwrite input that it still needs.
void Communicator::add_chunks(const Task& task, const Collective& collective, std::vector<CallPart>& steps) {
  const uint64_t n = uint64_t(ranks()), bytes = collective.arguments.bytes;
  constexpr uint64_t unit = 128;  // aligned parts move faster
  // Peers access the parts of a chunk only if it is not too long.
  const uint64_t most =
      copies_always_ ? most_part : std::min(most_part, Executor::most_direct / n / unit * unit);
  uint64_t begin = 0;
  while (const uint64_t part = std::min((bytes - begin) / n / unit * unit, most)) {
    if (!part_) part_ = device_->allocate(most_part);
    Collective scatter = collective;
    scatter.shape = {"reducescatter", part * n, collective.shape.dtype, 0};
    scatter.arguments.bytes = part * n;
    scatter.arguments.in = static_cast<const char*>(collective.arguments.in) + begin;
    scatter.arguments.out = part_->at();
    if (!why_other_steps(scatter).empty()) scatter.shape.program = scatter_within(plans_.max_blocks());
    steps.push_back({scatter, {}});
    Messages messages;
    char* const out = static_cast<char*>(collective.arguments.out) + begin;
    const bool all = task.function != Function::ncclReduce;
    for (int peer = 0; peer < ranks(); ++peer) {
      if (all || peer == task.root) messages.sends.push_back({part_->at(), part, peer});
      if (all || rank() == task.root) messages.recvs.push_back({out + uint64_t(peer) * part, part, peer});
    }
    steps.push_back({std::nullopt, std::move(messages)});
    begin += part * n;
  }
  if (begin < bytes) steps.push_back({tail_of(collective, begin), {}});
}

std::vector<Communicator::CallPart> Communicator::steps_of(const Task& task, const Collective& collective) {
  std::vector<CallPart> steps;
  if (why_other_steps(collective).empty()) {
    steps.push_back({collective, {}});
    return steps;
  }
  const uint64_t bytes = task.count * element_bytes(task.type);
  char* const in = static_cast<char*>(const_cast<void*>(task.send));
  char* const out = static_cast<char*>(task.recv);
  switch (task.function) {
    case Function::ncclAllReduce:
    case Function::ncclReduce:
      add_chunks(task, collective, steps);
      return steps;
    case Function::ncclReduceScatter:
      steps.push_back({collective, {}});
      steps.back().collective->shape.program = scatter_within(plans_.max_blocks());
      return steps;
    case Function::ncclAllGather:
    case Function::ncclAlltoAll: {
      CallPart step;
      for (int peer = 0; peer < ranks(); ++peer) {
        const bool own_part = task.function == Function::ncclAlltoAll;
        step.messages.sends.push_back({in + (own_part ? uint64_t(peer) * bytes : 0), bytes, peer});
        step.messages.recvs.push_back({out + uint64_t(peer) * bytes, bytes, peer});
      }
      steps.push_back(std::move(step));
      return steps;
    }
    default:  // a broadcast
      break;
  }
  // A root that sends to many peers is slower than a plan.
  if (!copies_always_ && ranks() > 2 && bytes > most_by_root) {
    steps.push_back({collective, {}});
    return steps;
  }
  CallPart step;
  for (int peer = 0; task.root == rank() && peer < ranks(); ++peer)
    step.messages.sends.push_back({in, bytes, peer});
  step.messages.recvs.push_back({out, bytes, task.root});
  steps.push_back(std::move(step));
  return steps;
}

}  // namespace chorale::nccl
