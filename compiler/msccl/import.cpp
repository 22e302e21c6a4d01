// This file makes a plan from an MSCCL algorithm.
//
// Each connection becomes a pair of memory channels. At the beginning of a launch, its receiver signals that
// messages may come: the previous launch has ended, and the application has passed its buffers. Its sender
// waits for that before the first message. Then it puts each message and signals, and the receiver waits for
// the signal. Each message has a separate place at the receiver, so no sender ever waits for a free place.
// MSCCL's buffers hold only a few messages. An algorithm that ends with them also ends without them.
//
// A <copy> that changes something becomes a step of an additional thread block. The steps that access its
// chunks wait for it.
//
// Each dependency becomes a semaphore of two thread blocks. One releases it after the step that is waited
// for, the other acquires it before the step that waits. Dependencies between the same two blocks come in the
// same order on both sides, so one semaphore serves them all.

#include <algorithm>
#include <iterator>
#include <map>

#include "algorithm.hpp"
#include "chorale/collective.hpp"
#include "chorale/msccl_xml.hpp"
#include "connections.hpp"
#include "placement.hpp"
#include "writer.hpp"

namespace chorale {
namespace msccl {
namespace {

/// Holds what a thread block must do with one of its connections.
struct End {
  const Connection* connection = nullptr;  ///< null: there is no connection
  const std::vector<Arrival>* arrivals = nullptr;
  uint32_t channel = 0;  ///< at this rank
  size_t next = 0;       ///< the next message
};

/// Holds what a thread block does in addition to its steps.
struct Duties {
  End in, out;
  std::vector<std::vector<uint32_t>> acquires, releases;  ///< by step: semaphores
};

/// Writes the operations of an algorithm.
class Lowering {
 public:
  Lowering(const Algorithm& algorithm, const Findings& findings, Plan& plan);

  void connections(const std::vector<Connection>& connections,
                   const std::vector<std::vector<Arrival>>& arrivals) {
    for (size_t k = 0; k < connections.size(); ++k) {
      const Connection& made = connections[k];
      blocks_[made.from][made.sender].out = {&made, &arrivals[k], writers_[made.from].add_channel(made.to)};
      blocks_[made.to][made.receiver].in = {&made, &arrivals[k], writers_[made.to].add_channel(made.from)};
    }
  }

  void dependencies(uint32_t gpu, const std::vector<Dependency>& dependencies) {
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> semaphores;  // by releasing and acquiring block
    for (const auto& [before, after] : dependencies) {
      const auto [entry, added] = semaphores.try_emplace({before.block, after.block}, 0);
      if (added) entry->second = writers_[gpu].add_semaphore();
      blocks_[gpu][before.block].releases[before.step].push_back(entry->second);
      blocks_[gpu][after.block].acquires[after.step].push_back(entry->second);
    }
  }

  void run() {
    for (uint32_t gpu = 0; gpu < algorithm_.gpus.size(); ++gpu) {
      for (uint32_t id = 0; id < algorithm_.gpus[gpu].blocks.size(); ++id) block(gpu, id);
    }
  }

 private:
  void block(uint32_t gpu, uint32_t id) {
    const Block& block = algorithm_.gpus[gpu].blocks[id];
    Duties& duties = blocks_[gpu][id];
    RankWriter& writer = writers_[gpu];
    if (duties.in.connection) {
      // The signal gets the line of the first step that needs it.
      const uint32_t line = block.steps[duties.in.connection->messages.front().received].line;
      writer.control(id, Opcode::relaxed_signal, {&duties.in.channel, 1}, place(line));
    }
    for (uint32_t number = 0; number < block.steps.size(); ++number) {
      const AlgorithmStep& step = block.steps[number];
      at_ = place(step.line);
      for (const uint32_t semaphore : duties.acquires[number])
        writer.control(id, Opcode::sem_acquire, {&semaphore, 1}, at_);
      this->step(writer, id, step, duties);
      for (const uint32_t semaphore : duties.releases[number])
        writer.control(id, Opcode::sem_release, {&semaphore, 1}, at_);
    }
  }

  void step(RankWriter& writer, uint32_t id, const AlgorithmStep& step, Duties& duties) {
    const AlgorithmStepType& type = *step.type;
    if (step.is("cpy")) writer.copy(id, step.source, step.destination, at_);
    if (step.is("re")) writer.reduce(id, step.destination, step.source, step.destination, at_);
    Region result = step.source;
    if (type.receives) {
      const Region message = receive(writer, id, step, duties.in);
      const bool direct = (*duties.in.arrivals)[duties.in.next - 1].direct;
      result = message;
      if (type.reduces) {
        // A sum without a destination is made in the place of the message, which nobody else reads.
        if (type.destination) result = step.destination;
        writer.reduce(id, step.source, message, result, at_);
      } else if (!direct) {
        writer.copy(id, message, step.destination, at_);
      }
    }
    if (type.sends) send(writer, id, step, result, duties.out);
  }

  /// Waits for the next message of a connection.
  /// \returns where the message is
  Region receive(RankWriter& writer, uint32_t id, const AlgorithmStep& step, End& in) {
    writer.control(id, Opcode::wait, {&in.channel, 1}, at_);
    const Arrival& arrival = (*in.arrivals)[in.next++];
    if (arrival.direct) return step.destination;
    return {BufferKind::scratch, arrival.slot, step.count};
  }

  void send(RankWriter& writer, uint32_t id, const AlgorithmStep& step, Region from, End& out) {
    if (out.next == 0) writer.control(id, Opcode::relaxed_wait, {&out.channel, 1}, at_);
    const Message& message = out.connection->messages[out.next];
    const Arrival& arrival = (*out.arrivals)[out.next++];
    const Region slot{BufferKind::scratch, arrival.slot, step.count};
    const Block& receiver = algorithm_.gpus[out.connection->to].blocks[out.connection->receiver];
    writer.put(id, from, out.connection->to,
               arrival.direct ? receiver.steps[message.received].destination : slot, at_);
    writer.control(id, Opcode::signal, {&out.channel, 1}, at_);
  }

  /// Returns the author's line, as in Op::at.
  uint32_t place(uint32_t line) {
    const auto [entry, added] = places_.try_emplace(line, uint32_t(plan_.source.size() + 1));
    if (added) plan_.source.push_back(findings_.at(line));
    return entry->second;
  }

  const Algorithm& algorithm_;
  const Findings& findings_;
  Plan& plan_;
  std::vector<RankWriter> writers_;
  std::vector<std::vector<Duties>> blocks_;  // by gpu and thread block
  std::map<uint32_t, uint32_t> places_;      // by line
  uint32_t at_ = 0;                          // the line of the current step
};

Lowering::Lowering(const Algorithm& algorithm, const Findings& findings, Plan& plan)
    : algorithm_(algorithm), findings_(findings), plan_(plan) {
  plan.name = algorithm.name;
  plan.collective = algorithm.collective;
  plan.inplace = algorithm.inplace;
  if (collective_info(plan.collective).has_root()) plan.extension.root = algorithm.root;
  plan.extension.post = algorithm.post;
  if (!algorithm.post.empty()) plan.extension.input_segments = plan.extension.output_segments = 1;
  plan.min_message_size = algorithm.min_bytes;
  plan.max_message_size = algorithm.max_bytes;
  plan.gpus.resize(algorithm.gpus.size());
  for (uint32_t id = 0; id < plan.gpus.size(); ++id) {
    Gpu& gpu = plan.gpus[id];
    gpu.id = id;
    gpu.chunks[size_t(BufferKind::input)] = algorithm.input;
    gpu.chunks[size_t(BufferKind::output)] = algorithm.output;
    gpu.chunks[size_t(BufferKind::scratch)] = algorithm.gpus[id].scratch;
    const size_t blocks = algorithm.gpus[id].blocks.size();
    writers_.emplace_back(gpu, blocks);
    std::vector<Duties>& duties = blocks_.emplace_back(blocks);
    for (size_t block = 0; block < blocks; ++block) {
      duties[block].acquires.resize(algorithm.gpus[id].blocks[block].steps.size());
      duties[block].releases.resize(algorithm.gpus[id].blocks[block].steps.size());
    }
  }
}

Plan lower(Algorithm& algorithm, Findings& findings) {
  Plan plan;
  const std::vector<Connection> made = connect(algorithm, findings);
  std::vector<std::vector<Dependency>> waits;
  for (uint32_t gpu = 0; gpu < algorithm.gpus.size(); ++gpu)
    waits.push_back(dependencies(algorithm, gpu, findings));
  if (!findings.empty()) return plan;
  const std::vector<std::vector<Arrival>> arrivals = place_messages(algorithm, made, waits);
  Lowering lowering(algorithm, findings, plan);
  lowering.connections(made, arrivals);
  for (uint32_t gpu = 0; gpu < algorithm.gpus.size(); ++gpu) lowering.dependencies(gpu, waits[gpu]);
  lowering.run();
  return plan;
}

/// Returns the file name of a path, such as "ring.xml" for "algorithms/ring.xml", because plans must not
/// contain paths of the author's machine.
std::string base_name(const std::string& path) {
  const size_t slash = path.find_last_of("/\\");
  return slash == path.npos ? path : path.substr(slash + 1);
}

}  // namespace
}  // namespace msccl

Plan import_msccl_xml(std::string_view xml, const std::string& file, Diagnostics& out,
                      std::vector<Note>* assumed) {
  Diagnostics found;  // separate from the findings that are there already
  msccl::Findings findings(msccl::base_name(file), found);
  Plan plan;
  msccl::Algorithm algorithm = msccl::read_algorithm(xml, findings);
  if (findings.empty()) msccl::settle(algorithm, findings);
  if (findings.empty()) {
    msccl::write_copies(algorithm);
    plan = msccl::lower(algorithm, findings);
  }
  if (assumed) {
    for (std::string& sentence : algorithm.assumed)
      assumed->push_back(findings.note(algorithm.line, std::move(sentence)));
  }
  std::move(found.begin(), found.end(), std::back_inserter(out));
  return plan;
}

}  // namespace chorale
