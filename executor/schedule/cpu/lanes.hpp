/// \file
/// On the CPU lanes are threads, or fibers of a seeded world.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../backend.hpp"
#include "../sm_copies.hpp"
#include "chorale/device/group.hpp"
#include "memory.hpp"
#include "sm_copy_fibers.hpp"

namespace chorale::hostrun {

/// Lets a lane wait, and lets other lanes go on, as a thread or as a fiber of a seeded world.
class LaneHost {
 public:
  virtual ~LaneHost() = default;
  /// Returns when ready(state) holds, or when the lane has to stop.
  /// \param bell    a word that changes when ready() may have begun to hold; null: nobody rings
  /// \param action  the action that waits
  virtual Stop wait(bool (*ready)(const void*), const void* state, std::atomic<uint32_t>* bell,
                    const Action& action) = 0;
  /// Called before each action that peers can see. A seed may let others go first here.
  virtual void step() {}
  /// Called before a launch. The executor itself waits in it.
  virtual void wait_in(const Action&) {}
};

/// Gives every lane a thread. Each thread plays its lane's actions once per run, in order; run() waits for
/// all of them.
class CpuLanes final : public Lanes {
 public:
  explicit CpuLanes(Bound bound);
  ~CpuLanes() override;

  void run(void* stream) override;
  void synchronize(void* stream) override;
  void check() override;
  void* buffer(uint32_t tensor) const override;

 private:
  friend class ThreadHost;

  /// The progress of a lane, as other lanes see it.
  struct alignas(128) Progress {
    std::atomic<uint64_t> done{0};  ///< actions, of all runs
    std::atomic<uint32_t> bell{0};
    uint64_t runs = 0;       // guarded by mutex_: runs that have ended, well or not
    std::string stopped_at;  // guarded by mutex_: the wait that it was in when the world stopped
  };

  void start();
  void quit();
  void serve(uint32_t lane);
  void run_as_fibers();
  Stop play(uint32_t lane, uint64_t run, LaneHost& host);
  Stop attempt(const Action& action, uint64_t run, LaneHost& host);
  Stop act(const Action& action, uint64_t run, LaneHost& host);
  Stop launch(const Action& action, LaneHost& host);
  Stop sm_copy(const Action& action, LaneHost& host);
  bool is_lane() const;
  std::string text(const Action& action) const;

  Bound bound_;
  World& world_;
  CpuMemory memory_;
  RankProgram program_;
  Launches launches_;
  SmCopies sm_copies_;
  std::vector<SmCopyFibers> fibers_;  ///< by lane
  bool is_in_fibers_ = false;         ///< a run of a seeded world is under way
  std::vector<Progress> progress_;    ///< by lane

  std::mutex mutex_;
  std::condition_variable requested_changed_, runs_changed_;
  uint64_t requested_ = 0;  // guarded by mutex_
  bool quit_ = false;       // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace chorale::hostrun
