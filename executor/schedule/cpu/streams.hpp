/// \file
/// On the CPU the streams of a schedule are threads, or fibers of a seeded world.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "chorale/device/group.hpp"
#include "executor/schedule/backend.hpp"
#include "memory.hpp"

namespace chorale::schedule_run {

/// Lets a stream wait while other streams continue, as a thread or as a fiber of a seeded world.
class StreamHost {
 public:
  virtual ~StreamHost() = default;
  /// Returns when ready(state) holds, or when the stream has to stop.
  /// \param bell a word that changes when ready() may have begun to hold
  /// \param action the action that waits
  virtual Stop wait(bool (*ready)(const void*), const void* state, std::atomic<uint32_t>& bell,
                    const Action& action) = 0;
  /// Streams call this before each action that peers can see. With a seed, others may run first here.
  virtual void step() {}
  /// Streams call this before a launch, in which the executor itself waits.
  virtual void wait_in(const Action&) {}
};

/// Gives every stream a thread. In each run a thread does the actions of its stream once, in order; run()
/// waits for all threads.
class CpuStreams final : public Streams {
 public:
  explicit CpuStreams(Bound bound);
  ~CpuStreams() override;

  void run(void* stream) override;
  void synchronize(void* stream) override;
  void check() override;
  void* buffer(uint32_t tensor) const override;

 private:
  friend class ThreadHost;

  /// Shows the progress of a stream to the other streams.
  struct alignas(128) Progress {
    std::atomic<uint64_t> done{0};  ///< the number of actions done, over all runs
    std::atomic<uint32_t> bell{0};
    uint64_t runs = 0;  // guarded by mutex_: the number of runs that have ended, with or without an error
    std::string stopped_at;  // guarded by mutex_: the wait in which it was when the world stopped
  };

  void start();
  void quit();
  void serve(uint32_t stream);
  void run_as_fibers();
  Stop run_actions(uint32_t stream, uint64_t run, StreamHost& host);
  Stop attempt(const Action& action, uint64_t run, StreamHost& host);
  Stop act(const Action& action, uint64_t run, StreamHost& host);
  Stop launch(const Action& action, StreamHost& host);
  bool is_called_by_stream() const;
  std::string text(const Action& action) const;

  Bound bound_;
  World& world_;
  CpuMemory memory_;
  RankProgram program_;
  Launches launches_;
  bool is_in_fibers_ = false;       ///< a run of a seeded world is in progress
  std::vector<Progress> progress_;  ///< by stream

  std::mutex mutex_;
  std::condition_variable requested_changed_, runs_changed_;
  uint64_t requested_ = 0;  // guarded by mutex_
  bool quit_ = false;       // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace chorale::schedule_run
