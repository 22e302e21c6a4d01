#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "scheduler_impl.hpp"

namespace chorale::fibers {

/// Keeps blocks in `seats`, one per worker. A caller takes a free seat and runs the blocks in it, of any
/// rank; if none is free, it sleeps. When its own launch has ended, it hands the seat with all blocks to a
/// sleeping caller. So a block stays with its seat, and switching blocks takes no lock that another thread
/// wants.
///
/// Take a seat's `lock` before `mutex_`. find_deadlock(), which needs all seats, only tries their locks.
class ThreadedScheduler : public SchedulerImpl {
 public:
  explicit ThreadedScheduler(Scheduler::Options options);

  LaunchResult run_blocks(int rank, int blocks, const Body& body, const Describe& describe) override;
  void end_rank(int rank) override;
  void rearm() override;

 private:
  struct Seat;

  struct Call : Launch {
    std::condition_variable woken;
    Seat* seat = nullptr;
    bool done = false;  // guarded by mutex_; other threads do not touch the call after they set it
  };

  /// Holds a block with its parking condition, so that a check of a thousand blocks walks through one array.
  struct Entry {
    Ready ready;
    const void* state;
    std::unique_ptr<BlockTask> task;
  };

  struct alignas(128) Seat {
    std::mutex lock;             // held while blocks run
    std::vector<Entry> entries;  // guarded by lock
    bool recorded = false;       // guarded by mutex_: its unfinished blocks are in stuck_

    // The members below are guarded by mutex_. `mail` tells without the lock that the inbox has blocks.
    Call* owner = nullptr;
    std::vector<std::unique_ptr<BlockTask>> inbox;
    std::atomic<bool> mail{false};
    std::condition_variable rung;
  };

  void make_room(Seat& seat, size_t blocks);
  void work(Call& call);
  bool round(Seat& seat, const Call& call);
  void idle(Seat& seat, Call& call, unsigned times);
  void end(std::unique_ptr<BlockTask> task, const Call& by);
  void post(Seat& seat, std::unique_ptr<BlockTask> task);
  void ring(Seat& seat);
  void collect(Seat& seat);
  void share(Seat& seat);
  void leave_seat(Call& call);
  void check_deadlines(Seat* held);
  std::vector<Stuck> look(Seat* held);
  void look(const Seat& seat, std::vector<Stuck>& seen) const;
  void record(Seat& seat);
  void report(BlockTask& task);
  bool may_be_stuck() const;
  void find_deadlock();

  std::vector<Seat> seats_;
  // All workers write these words, so each has a line of its own.
  alignas(128) std::atomic<int> active_{0};          // the number of workers that are not idle
  alignas(128) std::atomic<Seat*> hungry_{nullptr};  // a seat whose worker has nothing to run

  alignas(128) std::mutex mutex_;
  std::vector<Call*> calls_;     // launches that have not ended
  std::vector<Call*> sleepers_;  // the calls that have no seat
  TaskPool<BlockTask> pool_;
  std::vector<Stuck> stuck_;
  std::condition_variable recorded_;

  // These copies of counts let may_be_stuck() read without the mutex.
  std::atomic<int> launched_{0};
  std::atomic<int> ended_ranks_{0};
};

}  // namespace chorale::fibers
