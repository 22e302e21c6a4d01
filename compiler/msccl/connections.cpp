#include "connections.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace chorale::msccl {
namespace {

/// Holds one side of a connection: the steps of a thread block that send, or those that receive.
struct Side {
  uint32_t block = 0;
  std::vector<uint32_t> steps;
};

struct Sides {
  Side sender, receiver;
};

using Key = std::tuple<uint32_t, uint32_t, uint32_t>;  // from, to, channel

std::string over(uint32_t channel) { return " on channel " + std::to_string(channel); }

/// Pairs the two sides of all connections.
class Pairing {
 public:
  Pairing(const Algorithm& algorithm, Findings& findings) : algorithm_(algorithm), findings_(findings) {}

  std::vector<Connection> run() {
    for (uint32_t gpu = 0; gpu < algorithm_.gpus.size(); ++gpu) {
      for (uint32_t id = 0; id < algorithm_.gpus[gpu].blocks.size(); ++id) collect(gpu, id);
    }
    std::vector<Connection> connections;
    for (const auto& [key, sides] : sides_) {
      const std::vector<uint32_t>&sent = sides.sender.steps, &received = sides.receiver.steps;
      Connection& made = connections.emplace_back();
      std::tie(made.from, made.to, made.channel) = key;
      made.sender = sides.sender.block;
      made.receiver = sides.receiver.block;
      if (sent.size() != received.size()) {
        in_vain(key, sides);
        continue;
      }
      for (size_t k = 0; k < sent.size(); ++k) made.messages.push_back({sent[k], received[k]});
      sizes(made);
    }
    return connections;
  }

 private:
  void collect(uint32_t gpu, uint32_t id) {
    const Block& block = this->block(gpu, id);
    std::vector<uint32_t> sends, receives;
    for (uint32_t step = 0; step < block.steps.size(); ++step) {
      if (block.steps[step].type->sends) sends.push_back(step);
      if (block.steps[step].type->receives) receives.push_back(step);
    }
    if (!sends.empty()) {
      const Key key{gpu, uint32_t(block.send), block.channel};
      add(sides_[key].sender, gpu, id, std::move(sends), key, "sends to");
    }
    if (!receives.empty()) {
      const Key key{uint32_t(block.receive), gpu, block.channel};
      add(sides_[key].receiver, gpu, id, std::move(receives), key, "receives from");
    }
  }

  void add(Side& side, uint32_t gpu, uint32_t id, std::vector<uint32_t> steps, const Key& key,
           const char* does) {
    if (steps.empty()) return;
    if (!side.steps.empty()) {
      const auto [from, to, channel] = key;
      findings_.add(block(gpu, id).line,
                    block_name(gpu, id) + " " + does + " " + gpu_name(gpu == from ? to : from) +
                        over(channel) + ", as thread block " + std::to_string(side.block) +
                        " does: the order of their messages is not known",
                    "give one of them another chan",
                    {findings_.note(block(gpu, side.block).line, "the other one is here")});
      return;
    }
    side = {id, std::move(steps)};
  }

  /// Reports sends that are never received, and receives that nothing sends to.
  void in_vain(const Key& key, const Sides& sides) {
    const auto [from, to, channel] = key;
    const size_t sent = sides.sender.steps.size(), received = sides.receiver.steps.size();
    const bool more_sent = sent > received;
    const Side& longer = more_sent ? sides.sender : sides.receiver;
    const uint32_t step = longer.steps[std::min(sent, received)];
    const std::string there = (more_sent ? gpu_name(to) + " receives " : gpu_name(from) + " sends ") +
                              (std::min(sent, received) ? std::to_string(std::min(sent, received)) : "none");
    findings_.add(
        block(more_sent ? from : to, longer.block).steps[step].line,
        more_sent ? "this is never received: " + gpu_name(from) + " sends " + counted(sent, "message") +
                        " to " + gpu_name(to) + over(channel) + ", but " + there
                  : "this receives nothing: " + gpu_name(to) + " receives " + counted(received, "message") +
                        " from " + gpu_name(from) + over(channel) + ", but " + there);
  }

  void sizes(const Connection& connection) {
    for (const Message& message : connection.messages) {
      const AlgorithmStep& sent = block(connection.from, connection.sender).steps[message.sent];
      const AlgorithmStep& received = block(connection.to, connection.receiver).steps[message.received];
      if (sent.count == received.count) continue;
      findings_.add(received.line,
                    "cnt is " + std::to_string(received.count) + ", but what " + gpu_name(connection.from) +
                        " sends has " + counted(sent.count, "chunk"),
                    {}, {findings_.note(sent.line, "it is sent here")});
    }
  }

  const Block& block(uint32_t gpu, uint32_t id) const { return algorithm_.gpus[gpu].blocks[id]; }

  const Algorithm& algorithm_;
  Findings& findings_;
  std::map<Key, Sides> sides_;
};

/// Returns the first step, from `step` on, that tells others that it has ended; the number of steps if there
/// is none.
size_t telling(const Block& block, size_t step) {
  while (step < block.steps.size() && !block.steps[step].awaited.value_or(false)) ++step;
  return step;
}

/// Finds the dependencies of one gpu.
class Waits {
 public:
  Waits(const Algorithm& algorithm, uint32_t gpu, Findings& findings)
      : blocks_(algorithm.gpus[gpu].blocks), gpu_(gpu), findings_(findings) {}

  std::vector<Dependency> run() {
    for (uint32_t id = 0; id < blocks_.size(); ++id) {
      for (uint32_t step = 0; step < blocks_[id].steps.size(); ++step) {
        for (const StepRef& wanted : blocks_[id].steps[step].waits_for) wait({id, step}, wanted);
      }
    }
    return std::move(found_);
  }

 private:
  void wait(StepRef waiter, StepRef wanted) {
    const uint32_t line = blocks_[waiter.block].steps[waiter.step].line;
    const std::string waits = "this waits for step " + std::to_string(wanted.step) + " of thread block " +
                              std::to_string(wanted.block) + ", but ";
    if (wanted.block >= blocks_.size()) {
      findings_.add(line, waits + gpu_name(gpu_) + " has " + counted(blocks_.size(), "thread block"));
      return;
    }
    const std::vector<AlgorithmStep>& steps = blocks_[wanted.block].steps;
    if (wanted.step >= steps.size()) {
      findings_.add(line, waits + "that has " + counted(steps.size(), "step"));
      return;
    }
    if (wanted.block == waiter.block) {
      if (wanted.step >= waiter.step)
        findings_.add(line, waits + "that is " + (wanted.step == waiter.step ? "itself" : "after it"));
      return;
    }
    const size_t told = telling(blocks_[wanted.block], wanted.step);
    if (told == steps.size()) {
      findings_.add(line, waits + "neither that nor a later step there says hasdep=\"1\"", {},
                    {findings_.note(steps[wanted.step].line, "it waits for this one")});
      return;
    }
    uint32_t& met = met_[{waiter.block, wanted.block}];
    if (told < met) return;
    met = uint32_t(told) + 1;
    found_.push_back({{wanted.block, uint32_t(told)}, waiter});
  }

  const std::vector<Block>& blocks_;
  uint32_t gpu_;
  Findings& findings_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> met_;  // by both blocks: how many steps of one have ended
  std::vector<Dependency> found_;
};

}  // namespace

std::vector<Connection> connect(const Algorithm& algorithm, Findings& findings) {
  return Pairing(algorithm, findings).run();
}

std::vector<Dependency> dependencies(const Algorithm& algorithm, uint32_t gpu, Findings& findings) {
  return Waits(algorithm, gpu, findings).run();
}

}  // namespace chorale::msccl
