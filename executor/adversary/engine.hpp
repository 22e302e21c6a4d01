#pragma once
/// \file
/// An Engine runs schedules of a program, one after the other.

#include <cstdint>
#include <string>
#include <vector>

#include "expected.hpp"
#include "memory.hpp"
#include "program.hpp"
#include "turns.hpp"

namespace chorale::adversary {

class Engine {
 public:
  Engine(const Plan&, const Program&, const AdversaryOptions&);

  Verdict run(uint64_t seed);

 private:
  enum class Mode { calm, drawn };
  /// Tells how a step ended.
  enum class Did { step, park, end };

  struct ThreadState {
    uint32_t pc = 0, end = 0;
    uint32_t source = 0;  ///< the number of sources that the current move has loaded
    Value sum;
    bool begun = false;  ///< whether the instruction has already counted itself
    uint64_t goal = 0;
    uint32_t view = 0;
  };
  struct BlockState {
    uint32_t segment = 0, arrived = 0, view = 0;
  };
  /// Represents the count of a signal or a barrier, which only grows.
  struct Counter {
    uint64_t count = 0, expected = 0;
    std::vector<uint32_t> views, starts;  ///< by post: the view that it gives to an acquiring wait, and to a
                                          ///< relaxed wait
    std::vector<uint32_t> waiting;
  };
  struct Permits {
    uint64_t count = 0;
    uint32_t view = 0;
    std::vector<uint32_t> waiting;
  };
  struct Transfer {
    uint32_t push = 0, flag = 0, first_value = 0;
    uint32_t done = 0, offset = 0;  ///< the number of cells read, then written; the index of the first cell
    uint32_t start = 0;             ///< the start of the launch that pushed it
  };
  struct QueueState {
    std::vector<Transfer> transfers;
    std::vector<Value> values;
    uint32_t read = 0, written = 0;  ///< the number of transfers read and written
    std::vector<uint32_t> waiting;
  };
  struct RankState {
    uint32_t launch = 0;
    bool running = false;
    uint32_t threads_left = 0, reads_left = 0;
    uint32_t start = 0;
  };

  Verdict execute(uint64_t seed, Mode mode);
  void begin(uint64_t seed, Mode mode);
  void set_speeds(uint32_t unfair);
  bool step(uint32_t agent);

  Did step_thread(uint32_t thread);
  Did step_move(uint32_t thread, const Instruction&);
  Did await(uint32_t thread, const Instruction&);
  Did acquire(uint32_t thread, const Instruction&);
  Did arrive(uint32_t thread, const Instruction&);
  Did drain(uint32_t thread, const Instruction&);
  void post(uint32_t thread, const Instruction&);
  void push(uint32_t thread, const Instruction&);
  Did sync(uint32_t thread);
  void end_thread(uint32_t thread);
  Did read_queue(uint32_t queue);
  Did write_queue(uint32_t queue);
  Did step_rank(uint32_t rank);
  void begin_launch(uint32_t rank);
  void end_launch(uint32_t rank);
  void poison(uint32_t rank);
  void check_poison(uint32_t rank);
  void check_result(uint32_t rank);
  void wrong(uint32_t rank, bool input, uint32_t cell);
  void copy(const std::vector<Copy>&);
  void raise(Counter&, uint32_t view, uint32_t start);
  void wake(std::vector<uint32_t>& waiting);
  void wake_packets();
  void wait_for_packet(uint32_t agent, uint32_t cell);
  void found(Verdict::Kind, uint32_t rank, uint64_t cell, std::string text);
  void report_deadlock();

  Accessor accessor(uint32_t thread) const {
    const uint32_t block = program_.threads[thread].block;
    return {thread, block, blocks_[block].segment, threads_[thread].view};
  }
  uint32_t rank_of(uint32_t thread) const { return program_.blocks[program_.threads[thread].block].rank; }
  uint32_t epoch(uint32_t rank) const { return ranks_[rank].launch + 1; }
  uint64_t poison_value(uint32_t rank, uint32_t buffer, uint64_t cell) const;

  const Plan& plan_;
  const Program& program_;
  const AdversaryOptions& options_;
  const Expected expected_;
  Memory memory_;
  Turns turns_;
  Mode mode_ = Mode::drawn;
  Verdict verdict_;
  uint32_t ranks_left_ = 0;
  std::vector<ThreadState> threads_;
  std::vector<BlockState> blocks_;
  std::vector<Counter> signals_, barriers_;
  std::vector<Permits> semaphores_;
  std::vector<QueueState> queues_;
  std::vector<RankState> ranks_;
  std::vector<std::vector<uint32_t>> packet_waiting_;  ///< by cell
  std::vector<uint32_t> awaited_cells_;
  /// Holds the results of a calm schedule, by launch, rank and cell, for plans that do not declare what they
  /// compute.
  std::vector<std::vector<std::vector<uint64_t>>> calm_;
  Verdict calm_verdict_;

  // Agents are numbered in this order: threads, store buffers, the reading ends of queues, the writing ends
  // of queues, ranks.
  uint32_t first_buffer_, first_read_, first_write_, first_rank_, agents_;
};

}  // namespace chorale::adversary
